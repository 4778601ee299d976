// Pools in any state: sound ones, those of killed processes, damaged ones.
#include "tools/pool/entries.hpp"
#include "tools/pool/inspect.hpp"
#include "tools/pool/new_pool.hpp"
#include "tools/pool/repair.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/level_hashing.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/strings/typed_index.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <random>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/tests/pool/pool_indexes.hpp"
#include "support/campaign.hpp"
#include "support/child_process.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace {

// The calls that give a file a durable name, while a test asks for them.
std::vector<std::string>* recorded_calls = nullptr;

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename(); }

// True if the folder of `path` is locked (media::folder_lock).
bool has_lock_beside(const std::string& path) {
  const pmlab::descriptor folder(::open(pmlab::folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

// These take the place of libc's functions in this program and in the libraries that it loads.
extern "C" int fsync(int file) {
  if (recorded_calls != nullptr)
    recorded_calls->push_back("sync " +
                              file_name(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file))));
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"))(file);
}
extern "C" int rename(const char* from, const char* to) noexcept {
  if (recorded_calls != nullptr) recorded_calls->push_back("rename " + file_name(from) + " " + file_name(to));
  return reinterpret_cast<int (*)(const char*, const char*)>(dlsym(RTLD_NEXT, "rename"))(from, to);
}
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (recorded_calls != nullptr)
    recorded_calls->push_back("rename " + file_name(from) + " " + file_name(to) +
                              (has_lock_beside(to) ? " locked" : ""));
  using function = int (*)(int, const char*, int, const char*, unsigned);
  return reinterpret_cast<function>(dlsym(RTLD_NEXT, "renameat2"))(from_folder, from, to_folder, to, flags);
}

namespace pmlab::pool::pool_test {
namespace {

using indexes::entry;
using tree = indexes::fast_fair<media::pmem>;
using table = indexes::cceh<media::pmem>;

constexpr std::uint64_t pool_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t entries = 5000;
// Keys that stand nowhere in a pool by chance.
constexpr std::uint64_t key_of(std::uint64_t i) { return 0xA5C3'9617'0000'0000 + i; }

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string word(std::uint64_t value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

class Pools : public testing::Test {
 protected:
  // The pool of a process that is forked, and ends without closing anything.
  void in_another_process(const std::function<void()>& work) const {
    child_process process = child_process::forked(work);
    const exit_reason reason = process.wait();
    ASSERT_TRUE(reason.is_success() || reason.signal == SIGKILL) << reason.text();
  }

  template <class Index>
  void fill(const std::string& root, std::uint64_t count = entries) const {
    in_another_process([&] {
      media::pmem pool(path_, {.create_bytes = pool_bytes, .huge_pages = false});
      auto index = Index::open(pool, root);
      for (std::uint64_t i = 0; i < count; ++i) static_cast<void>(index.insert(key_of(i), i));
    });
  }

  // The places of the eight bytes in the file.
  [[nodiscard]] std::vector<std::size_t> places_of(const std::string& what) const {
    const std::string bytes = bytes_of(path_);
    std::vector<std::size_t> places;
    for (std::size_t at = bytes.find(what); at != std::string::npos; at = bytes.find(what, at + 1))
      places.push_back(at);
    return places;
  }

  void overwrite(std::size_t at, const std::string& with) const {
    std::string bytes = bytes_of(path_);
    bytes.replace(at, with.size(), with);
    put_bytes(path_, bytes);
  }

  // The error of looking at the pool; empty: there is none.
  [[nodiscard]] std::string error_of_contents(const std::string& path) const {
    try {
      static_cast<void>(contents_of(path, patience(20)));
      return {};
    } catch (const error& e) {
      EXPECT_PRED2(tests::says, std::string(e.what()), "; ") << "no remedy: " << e.what();
      EXPECT_PRED2(tests::says, std::string(e.what()), path) << e.what();
      return e.what();
    }
  }

  tests::temporary_folder folder_;
  std::string path_ = folder_.file("pool");
  std::string copy_ = folder_.file("copy");
};

void expect_part(const std::string& said, const std::string& part) { EXPECT_PRED2(tests::says, said, part); }

TEST_F(Pools, WhatAPoolHoldsIsSeenAndTheFileStaysAsItIs) {
  fill<tree>("orders");
  fill<table>("customers", 10);
  const std::string before = bytes_of(path_);
  const contents all = contents_of(path_);
  EXPECT_EQ(all.file_bytes, pool_bytes);
  EXPECT_GT(all.allocated_bytes, entries * sizeof(entry));
  ASSERT_EQ(all.roots.size(), 2U);
  EXPECT_EQ(all.roots[0].facts.name, "orders");
  EXPECT_EQ(all.roots[0].index->name, "fast_fair");
  EXPECT_EQ(all.roots[1].facts.layout, "cceh");
  const std::vector<root_report> shapes = shapes_of(all);
  EXPECT_EQ(shapes[0].shape->entries, entries);
  EXPECT_GT(shapes[0].shape->depth, 1U);
  EXPECT_EQ(shapes[1].shape->entries, 10U);
  for (const root_report& r : checks_of(all)) EXPECT_TRUE(r.problem.empty() && r.violations.empty()) << r.problem;
  const read_entries read = entries_of(all, all.roots[1], reading::opened);
  EXPECT_EQ(read.problem, "");
  ASSERT_EQ(read.entries.size(), 10U);
  EXPECT_TRUE(std::is_sorted(read.entries.begin(), read.entries.end(),
                             [](const entry& a, const entry& b) { return a.key < b.key; }));
  EXPECT_TRUE(bytes_of(path_) == before) << "the file was changed";
}

TEST_F(Pools, WhatNobodyHereCanReadIsNamed) {
  fill<table>("mine", 10);
  in_another_process([&] {
    media::pmem pool(path_, {.huge_pages = false});
    static_cast<void>(pool.named_root("sessions", "strings", 3));
    static_cast<void>(pool.named_root("old", "cceh", 77));
    static_cast<void>(pool.named_root("promised", "fast_fair", tree::layout_version));
  });
  const contents all = contents_of(path_);
  ASSERT_EQ(all.roots.size(), 4U);
  EXPECT_EQ(all.roots[1].facts.version, 3U);
  expect_part(all.roots[1].problem, "layout 'strings'");
  expect_part(all.roots[2].problem, "version 77");
  EXPECT_TRUE(all.roots[3].is_empty());
  EXPECT_EQ(shapes_of(all)[0].shape->entries, 10U);
  EXPECT_EQ(shapes_of(all)[3].shape->entries, 0U);
  EXPECT_THROW(static_cast<void>(chosen_roots(all, {})), error);
  EXPECT_THROW(static_cast<void>(chosen_roots(all, {"old"})), error);
  EXPECT_THROW(static_cast<void>(chosen_roots(all, {"nine"})), error);
  EXPECT_EQ(chosen_roots(all, {"mine", "promised"}).size(), 2U);
}

TEST_F(Pools, APoolWhoseProcessWasKilledIsReadAsItIs) {
  auto* const answered = ::new (::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<std::uint64_t>(0);
  child_process writer = child_process::forked([&] {
    media::pmem pool(path_, {.create_bytes = 4 * pool_bytes, .huge_pages = false});
    auto index = tree::open(pool);
    for (std::uint64_t i = 0;; ++i)
      if (index.insert(key_of(i * 7919 % 1'000'000), i) == indexes::outcome::inserted) *answered = i + 1;
  });
  while (*answered < 10'000) ::usleep(100);
  writer.kill();
  ASSERT_EQ(writer.wait().signal, SIGKILL);
  const std::uint64_t sure = *answered;
  const contents all = contents_of(path_);
  EXPECT_TRUE(checks_of(all)[0].violations.empty());
  const read_entries read = entries_of(all, all.roots[0], reading::opened);
  EXPECT_EQ(read.problem, "");
  std::map<std::uint64_t, std::uint64_t> found;
  for (const entry& e : read.entries) found[e.key] = e.value;
  EXPECT_GE(found.size(), sure);
  EXPECT_LE(found.size(), sure + 1);
  for (std::uint64_t i = 0; i < sure; ++i) ASSERT_EQ(found.at(key_of(i * 7919 % 1'000'000)), i);
  const std::vector<salvaged_root> salvaged = repair(all, chosen_roots(all, {}), copy_, 0);
  EXPECT_TRUE(salvaged[0].is_whole());
  EXPECT_EQ(shapes_of(contents_of(copy_))[0].shape->entries, found.size());
  ::munmap(answered, sizeof *answered);
}

// Without them the new pool would take any types, and show the old keys and values as those.
TEST_F(Pools, ARepairedTypedIndexKeepsItsTypes) {
  struct order {
    std::uint64_t article, pieces;
  };
  using prices = strings::typed_index<std::int64_t, double, media::pmem, tree>;
  using orders = strings::typed_index<std::uint32_t, order, media::pmem, tree>;
  {
    media::pmem pool(path_, {.create_bytes = pool_bytes});
    prices::open(pool, "prices").insert(-1, 2.5);
    orders::open(pool, "orders").insert(7, order{3, 4});
  }
  const contents all = contents_of(path_);
  EXPECT_EQ(all.roots.size(), 3U) << "an index of numbers, strings and their words";
  for (const salvaged_root& r : repair(all, chosen_roots(all, {}), copy_, 0)) EXPECT_TRUE(r.is_whole());
  media::pmem pool(copy_);
  EXPECT_THROW((strings::typed_index<std::uint64_t, double, media::pmem, tree>::open(pool, "prices")), error);
  EXPECT_THROW((strings::typed_index<std::int32_t, order, media::pmem, tree>::open(pool, "orders")), error);
  EXPECT_EQ(prices::open(pool, "prices").find(-1), 2.5);
  EXPECT_EQ(orders::open(pool, "orders").find(7)->pieces, 4U);
}

TEST_F(Pools, BothHalvesOfAHybridIndexAreShownAndNoMark) {
  {
    media::pmem pool(path_, {.create_bytes = pool_bytes});
    auto index = hybrid::hybrid_index<table, tree, hybrid::primary::hash>::open(pool, pool);
    index.insert(1, 2);
    index.settle();
    EXPECT_EQ(pool.roots().size(), 3U);
  }
  const contents all = contents_of(path_);
  ASSERT_EQ(all.roots.size(), 2U);
  for (const root_report& r : checks_of(all)) EXPECT_TRUE(r.problem.empty() && r.violations.empty()) << r.problem;
}

TEST_F(Pools, ABrokenIndexIsFoundAndWhatIsLeftIsSaved) {
  fill<tree>("orders");
  for (const std::size_t at : places_of(word(key_of(100)))) overwrite(at, word(key_of(entries + 100)));
  const std::string before = bytes_of(path_);
  const contents all = contents_of(path_);
  EXPECT_FALSE(checks_of(all)[0].violations.empty());
  const salvaged_root salvaged = repair(all, chosen_roots(all, {}), copy_, 0)[0];
  EXPECT_FALSE(salvaged.is_whole());
  EXPECT_GE(salvaged.entries, entries - 100) << salvaged.problem;
  const root_report copied = checks_of(contents_of(copy_))[0];
  EXPECT_TRUE(copied.problem.empty() && copied.violations.empty());
  EXPECT_EQ(copied.shape->entries, salvaged.entries);
  EXPECT_TRUE(bytes_of(path_) == before) << "the damaged file was changed";
}

// Skip lists and FP-trees walk their lists when they are opened, and refuse damaged ones. Then salvage reads them.
TEST_F(Pools, AnIndexThatDoesNotOpenHidesNoOtherAndIsReadWithoutIt) {
  fill<indexes::skip_list<media::pmem>>("customers");
  fill<indexes::fp_tree<media::pmem>>("suppliers");
  for (const std::size_t at : places_of(word(key_of(4321)))) overwrite(at, word(key_of(entries + 100)));
  fill<tree>("orders");
  const contents all = contents_of(path_);
  const std::vector<root_report> checked = checks_of(all);
  expect_part(checked[0].problem, "corrupt");
  expect_part(checked[1].problem, "corrupt");
  EXPECT_TRUE(checked[2].problem.empty() && checked[2].violations.empty());
  const std::vector<salvaged_root> salvaged = repair(all, chosen_roots(all, {}), copy_, 0);
  for (const std::size_t damaged : {0U, 1U}) {
    expect_part(salvaged[damaged].before.problem, "corrupt");
    EXPECT_FALSE(salvaged[damaged].is_whole());
    EXPECT_EQ(salvaged[damaged].entries, entries);
  }
  EXPECT_TRUE(salvaged[2].is_whole());
  EXPECT_EQ(salvaged[2].entries, entries);
  const contents copied = contents_of(copy_);
  const read_entries customers = entries_of(copied, copied.roots[0], reading::opened);
  for (std::uint64_t i = 0; i < entries; ++i) {
    if (i == 4321) continue;
    ASSERT_EQ(customers.entries[i < 4321 ? i : i - 1], (entry{key_of(i), i}));
  }
}

// The link of a node in the middle leads nowhere: the entries after it are in the slabs, and erased ones are not.
TEST_F(Pools, ALinkThatIsLostLosesNoEntry) {
  in_another_process([&] {
    media::pmem pool(path_, {.create_bytes = pool_bytes, .huge_pages = false});
    auto list = indexes::skip_list<media::pmem>::open(pool, "customers");
    for (std::uint64_t i = 0; i < entries; ++i) static_cast<void>(list.insert(key_of(i), i));
    for (std::uint64_t i = 0; i < entries; i += 10) static_cast<void>(list.erase(key_of(i)));
  });
  const std::size_t node = places_of(word(key_of(entries / 2 + 1))).at(0);
  overwrite(node + 16, word(0x40));
  const contents all = contents_of(path_);
  const salvaged_root salvaged = repair(all, chosen_roots(all, {}), copy_, 0)[0];
  expect_part(salvaged.problem, "a link leads to no entry");
  const contents copied = contents_of(copy_);
  const read_entries saved = entries_of(copied, copied.roots[0], reading::opened);
  // The node that lost its link cannot be distinguished from one that never was in the list; but it was reached before.
  ASSERT_EQ(saved.entries.size(), entries - entries / 10);
  for (const entry& e : saved.entries) EXPECT_TRUE(e.key == key_of(e.value) && e.value % 10 != 0) << e.value;
}

// A word that names the levels of a shard has a check; the rest of the table has nothing to do with it.
TEST_F(Pools, AShardThatIsLostTakesNoOtherWithIt) {
  fill<indexes::level_hashing<media::pmem>>("customers");
  const std::size_t root = bytes_of(path_).find(std::string("customers\0", 10)) - 8;
  std::uint64_t at = 0;
  std::memcpy(&at, bytes_of(path_).data() + root + 56, sizeof at);
  constexpr std::size_t header = 64, shard_bytes = 16;  // bytes of the root object; of the words of a shard
  constexpr std::uint64_t lost = 50;
  for (std::uint64_t shard = 100; shard < 100 + lost; ++shard)
    overwrite(at + header + shard * shard_bytes, word(0x1234'5678'9abc'def0) + word(0x1234'5678'9abc'def0));
  const contents all = contents_of(path_);
  expect_part(checks_of(all)[0].problem, "shard 100");
  const salvaged_root salvaged = repair(all, chosen_roots(all, {}), copy_, 0)[0];
  expect_part(salvaged.problem, "100 of its levels are lost");
  EXPECT_LT(salvaged.entries, entries);
  EXPECT_GT(salvaged.entries, entries - 10 * lost);
}

TEST_F(Pools, AKeyThatComesTwiceIsSaid) {
  fill<tree>("orders");
  for (const std::size_t at : places_of(word(key_of(110)))) overwrite(at, word(key_of(100)));
  const contents all = contents_of(path_);
  const read_entries read = entries_of(all, all.roots[0], reading::opened);
  EXPECT_EQ(read.contradictions, 1U);
  EXPECT_EQ(read.entries.size(), entries - 1);
  const std::vector<salvaged_root> salvaged = repair(all, chosen_roots(all, {}), copy_, 0);
  // A salvage sees which of the two is out of order.
  expect_part(salvaged[0].problem, "1 slots of node");
  EXPECT_EQ(salvaged[0].entries, entries - 1);
  EXPECT_FALSE(salvaged[0].is_whole());
}

// A leaf whose sibling is itself: no walk terminates, and entries before the circle are kept.
TEST_F(Pools, ACircleIsNoticed) {
  fill<tree>("orders");
  const std::string bytes = bytes_of(path_);
  const auto word_at = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  };
  constexpr std::size_t sibling = 8, level = 16;  // in a node, which begins with its high key
  std::size_t leaf = 0;
  for (std::uint64_t i = entries / 2; leaf == 0; ++i)
    for (const std::size_t at : places_of(word(key_of(i))))
      if (at % 64 == 0 && word_at(at + level) == 0 && word_at(at + sibling) != 0) leaf = at;
  overwrite(leaf + sibling, word(leaf));
  const contents all = contents_of(path_);
  const root_report checked = checks_of(all, patience(3))[0];
  EXPECT_FALSE(checked.problem.empty() && checked.violations.empty());
  const read_entries read = entries_of(all, all.roots[0], reading::opened);
  expect_part(read.problem, "this FAST-FAIR tree is corrupt: a link");
  EXPECT_GE(read.entries.size(), entries / 2);
  EXPECT_LT(read.entries.size(), entries);
  EXPECT_EQ(read.contradictions, 0U);
}

TEST_F(Pools, FilesThatAreNoPoolOfOursSayWhy) {
  expect_part(error_of_contents(path_), "there is no pool");
  expect_part(error_of_contents(path_.substr(0, path_.rfind('/'))), "it is no file");
  put_bytes(path_, std::string(pool_bytes, 'x'));
  expect_part(error_of_contents(path_), "not a pool");
  std::filesystem::remove(path_);
  fill<table>("mine", 10);
  const std::string sound = bytes_of(path_);
  overwrite(4096, "pmlab-pool-2");
  expect_part(error_of_contents(path_), "this build reads pmlab-pool-1");
  overwrite(4096, "photo album!");
  expect_part(error_of_contents(path_), "pool of something else");
  put_bytes(path_, sound.substr(0, pool_bytes / 2));
  EXPECT_NE(error_of_contents(path_), "");
  put_bytes(path_, sound);
  EXPECT_EQ(error_of_contents(path_), "");
  const media::pmem pool(path_, {.huge_pages = false});
  expect_part(error_of_contents(path_), "open in another process");
}

TEST_F(Pools, ANewPoolIsThereWholeOrNotAtAll) {
  const std::vector<entry> some = {{1, 1}, {2, 2}, {3, 3}};
  std::vector<entry> many;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) many.push_back({i, i});
  const bench::index_description* const index = &bench::find_index("cceh");
  make_pool(path_, pool_bytes, {{"a", index, some}, {"b", &bench::find_index("skip_list"), some}});
  EXPECT_EQ(contents_of(path_).roots.size(), 2U);
  EXPECT_THROW(make_pool(path_, pool_bytes, {{"a", index, some}}), error);
  EXPECT_THROW(make_pool(copy_, pool_bytes, {{"a", index, many}}), error);
  EXPECT_THROW(make_pool(copy_, pool_bytes, {{"a", &bench::find_index("std_map"), some}}), error);
  EXPECT_THROW(make_pool(copy_, 100, {{"a", index, some}}), error);
  EXPECT_THROW(make_pool(folder_.file("missing/pool"), pool_bytes, {{"a", index, some}}), error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()), {}), 1);
}

TEST_F(Pools, A1_ANewPoolIsSyncedBeforeItGetsItsNameAndItsFolderAfterwards) {
  const std::vector<entry> some = {{1, 1}, {2, 2}, {3, 3}};
  std::vector<std::string> calls;
  recorded_calls = &calls;
  make_pool(path_, pool_bytes, {{"a", &bench::find_index("cceh"), some}});
  recorded_calls = nullptr;
  const std::string folder = file_name(std::filesystem::path(path_).parent_path());
  ASSERT_GE(calls.size(), 3U);
  const std::vector<std::string> last(calls.end() - 3, calls.end());
  const std::string filling = last[0].substr(std::string("sync ").size());
  EXPECT_TRUE(filling.starts_with("pool.filling-" + std::to_string(::getpid()) + "-")) << filling;
  EXPECT_EQ(last,
            (std::vector<std::string>{"sync " + filling, "rename " + filling + " pool locked", "sync " + folder}));
  EXPECT_EQ(shapes_of(contents_of(path_))[0].shape->entries, some.size());
}

pid_t process_that_ended() {
  const pid_t process = ::fork();
  if (process == 0) ::_exit(0);
  EXPECT_EQ(::waitpid(process, nullptr, 0), process);
  return process;
}

TEST_F(Pools, FilesWithNamesLikeThoseOfUnfinishedOnesStay) {
  const std::string begin = path_ + ".filling-" + std::to_string(process_that_ended());
  media::pmem{begin, {.create_bytes = pool_bytes}};
  put_bytes(begin + "-notes.txt", "notes");
  put_bytes(begin + "-0123abcd", "no pool");
  std::filesystem::create_directory(begin + "-4567abcd");
  std::filesystem::create_symlink(begin, begin + "-89ababcd");
  make_pool(path_, pool_bytes, {{"a", &bench::find_index("cceh"), {{{1, 1}}}}});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()), {}), 6);
  EXPECT_THROW(make_pool(begin + "-cdefabcd", pool_bytes, {{"a", &bench::find_index("cceh"), {{{1, 1}}}}}), error);
}

// In a Latin-1 program "Auftr\xe4ge" is a name like any other.
TEST_F(Pools, NamesOfAnyBytesStayAsTheyAre) {
  const std::vector<std::string> names = {"Auftr\xe4ge", "Auftr\xf6ge", std::string(23, '\xff'), "Auftr\\xe4ge",
                                          "a\\b\n"};
  for (std::size_t i = 0; i < names.size(); ++i) fill<table>(names[i], 10 + i);
  const contents all = contents_of(path_);
  const auto expect_all = [&](const std::string& path) {
    const contents found = contents_of(path);
    ASSERT_EQ(found.roots.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(found.roots[i].facts.name, names[i]);
      EXPECT_EQ(check_of(found, found.roots[i]).shape->entries, 10 + i);
    }
  };
  expect_all(path_);
  static_cast<void>(repair(all, chosen_roots(all, {}), copy_, 0));
  expect_all(copy_);
  std::vector<std::string> shown;
  for (const root& r : all.roots) shown.push_back(printable(r.facts.name));
  for (const auto& given : {shown, names})
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(chosen_roots(all, {given[i]})[0].facts.name, names[i]);
  EXPECT_EQ(chosen_roots(all, {shown[3]})[0].facts.name, names[3]);
}

TEST_F(Pools, ThatAnotherProcessIsMakingAreLeftToIt) {
  const auto make = [&] { make_pool(path_, pool_bytes, {{"a", &bench::find_index("cceh"), {{{1, 1}}}}}); };
  const auto filling = [&](pid_t process) { return path_ + ".filling-" + std::to_string(process) + "-0123abcd"; };
  const pid_t dead = process_that_ended();
  for (const std::string& name : {filling(::getppid()), filling(dead), filling(dead) + ".unfinished"})
    media::pmem{name, {.create_bytes = pool_bytes}};
  {
    // As a process of another container has it.
    const media::pmem open_there(filling(dead));
    make();
    EXPECT_TRUE(std::filesystem::exists(filling(dead)));
  }
  std::filesystem::remove(path_);
  make();
  EXPECT_TRUE(std::filesystem::exists(filling(::getppid())));
  EXPECT_FALSE(std::filesystem::exists(filling(dead)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path()), {}), 2);
}

// Two processes make the same pool: one of them does, and the other reports that.
TEST_F(Pools, AreMadeByOneOfTwoProcesses) {
  for (int round = 0; round < 12; ++round) {
    std::filesystem::remove(path_);
    std::vector<pid_t> makers;
    for (std::uint64_t count = 1; count <= 2; ++count) {
      const pid_t maker = ::fork();
      if (maker == 0) {
        std::vector<entry> its;
        for (std::uint64_t i = 1; i <= count; ++i) its.push_back({i, i});
        try {
          make_pool(path_, pool_bytes, {{"a", &bench::find_index("cceh"), its}});
          ::_exit(static_cast<int>(count));
        } catch (const error& e) {
          ::_exit(std::string(e.what()).find("exists already") != std::string::npos ? 0 : 9);
        }
      }
      makers.push_back(maker);
    }
    std::vector<int> ends;
    for (const pid_t maker : makers) {
      int status = 0;
      ASSERT_EQ(::waitpid(maker, &status, 0), maker);
      ends.push_back(WEXITSTATUS(status));
    }
    const auto found = shapes_of(contents_of(path_))[0].shape->entries;
    EXPECT_EQ(ends[0] + ends[1], static_cast<int>(found)) << ends[0] << " " << ends[1];
  }
}

// One pool of each index, with random damage: it is refused, or opens and answers. libpmemobj alone faults on
// many of these, in the child process.
class DamagedPools : public Pools, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(OfEachIndex, DamagedPools, testing::ValuesIn(tests::pool_indexes()),
                         [](const auto& one) { return one.param; });

TEST_P(DamagedPools, AreRefusedOrOpen) {
  in_another_process([&] {
    media::pmem pool(path_, {.create_bytes = pool_bytes, .huge_pages = false});
    const auto index = bench::find_index(GetParam()).open_root(pool, "orders");
    for (std::uint64_t i = 0; i < 2000; ++i) static_cast<void>(index->insert(key_of(i), i));
  });
  const std::string sound = bytes_of(path_);
  const std::size_t heap = sound.find(std::string("orders\0\0", 8));
  ASSERT_NE(heap, std::string::npos);
  std::size_t refused = 0;
  for (const std::uint64_t seed : tests::seeds(10)) {
    std::mt19937_64 source(seed);
    std::string bytes = sound;
    // In turns: libpmemobj's words, and the heap with the roots.
    const std::size_t from = seed % 2 == 0 ? 0 : heap;
    const std::size_t room = seed % 2 == 0 ? heap : pool_bytes - heap;
    for (int change = 0; change < 3; ++change) {
      std::size_t at = from + source() % room;
      for (int tries = 0; tries < 100'000 && bytes[at] == 0; ++tries) at = from + source() % room;
      at -= at % sizeof(std::uint64_t);
      switch (source() % 3) {
        case 0: bytes.replace(at, sizeof(std::uint64_t), word(0)); break;
        case 1: bytes.replace(at, sizeof(std::uint64_t), word(source())); break;
        default: bytes[at] = static_cast<char>(bytes[at] ^ (1 << source() % 8));
      }
    }
    put_bytes(path_, bytes);
    try {
      refuse_damaged(path_, patience(5));
    } catch (const error& e) {
      ++refused;
      EXPECT_PRED2(tests::says, std::string(e.what()), "; ") << "no remedy: " << e.what();
      continue;
    }
    const child_end end = tests::run_in_child(
        [&]() -> std::string {
          try {
            media::pmem pool(path_, {.huge_pages = false});
            const auto index = bench::find_index(GetParam()).open_root(pool, "orders");
            for (std::uint64_t i = 0; i < 2 * entries; ++i) static_cast<void>(index->find(key_of(i)));
          } catch (const error& e) {
            // The name of the root may have gone.
          }
          return "answers";
        },
        std::chrono::seconds(10));
    EXPECT_EQ(end.describe(), "returned: answers") << "replay: " << tests::replay_command(seed);
  }
  EXPECT_GT(refused, 0U) << "no damage was found";
}

// Bytes of the table of roots, of libpmemobj's words and of the heap: whatever they become, there is an answer.
TEST_F(Pools, FlippedBytesEndInAnAnswer) {
  fill<tree>("orders");
  fill<table>("customers");
  const std::string sound = bytes_of(path_);
  std::size_t name = sound.find(std::string("orders\0\0", 8));
  ASSERT_NE(name, std::string::npos);
  const std::size_t roots = name - 8;
  std::size_t refused = 0, other = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 source(seed);
    // In turns: the two roots, the words before the heap, all of the file.
    const std::size_t from = seed % 3 == 0 ? roots : 0;
    const std::size_t room = seed % 3 == 0 ? 128 : seed % 3 == 1 ? roots : pool_bytes;
    std::string bytes = sound;
    for (int flips = 0; flips < 4; ++flips) {
      std::size_t at = from + source() % room;
      for (int tries = 0; tries < 1000 && bytes[at] == 0; ++tries) at = from + source() % room;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << source() % 8));
    }
    put_bytes(path_, bytes);
    std::filesystem::remove(copy_);
    try {
      const contents all = contents_of(path_, patience(5));
      for (const root_report& r : checks_of(all, patience(5)))
        other += r.problem.empty() && r.violations.empty() ? 0 : 1;
      static_cast<void>(repair(all, chosen_roots(all, {}), copy_, 0, patience(5)));
      for (const root_report& r : checks_of(contents_of(copy_))) EXPECT_TRUE(r.problem.empty() && r.violations.empty());
    } catch (const error& e) {
      ++refused;
      EXPECT_PRED2(tests::says, std::string(e.what()), "; ") << "no remedy: " << e.what();
    }
    EXPECT_TRUE(bytes_of(path_) == bytes) << "seed " << seed << " changed the file";
  }
  EXPECT_GT(refused, 0U) << "no flip was found by any check";
  EXPECT_GT(other, 0U) << "no index was found to be damaged";
}

}  // namespace
}  // namespace pmlab::pool::pool_test
