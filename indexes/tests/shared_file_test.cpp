// pod::space on files: joining and leaving, deaths, blocks, bad files; and the copies of pod::stale_lines. Schedules,
// caches and deaths at every access are verified on the simulated machine (subject shared_space).
#include <pmlab/base/child_process.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/pod/shared_dash.hpp>
#include <pmlab/pod/shared_file.hpp>
#include <pmlab/pod/shared_ring.hpp>
#include <pmlab/pod/shared_tree.hpp>
#include <pmlab/pod/stale_lines.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {
namespace {

using pod::shared_file;
using pod::sharing;
using stale_file = pod::space<pod::stale_lines>;
using word = std::atomic<std::uint64_t>;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class SharedFile : public testing::Test {
 protected:
  std::string made(std::uint64_t bytes = 4 * mib, std::uint64_t coherent = 4 * mib) {
    const std::string path = folder_.file("memory");
    pod::make_shared_file(path, bytes, coherent);
    return path;
  }
  temporary_folder folder_;
};

// A block of the medium that `root` leads to.
template <class Medium>
std::uint64_t* block_at(Medium& m, const char* root, std::size_t bytes) {
  word& leads = *m.named_root(root, "block", 1).word;
  media::refresh(m, leads);
  if (leads.load() == 0) {
    typename Medium::publication change(m);
    void* const block = change.allocate(bytes, 64);
    if (block == nullptr) return nullptr;
    change.store(leads, m.locate(static_cast<char*>(block)).word());
    change.commit();
  }
  return m.template resolve<std::uint64_t>(media::pointer<std::uint64_t>(leads.load()));
}
template <class Medium>
void release(Medium& m, const char* root, std::size_t bytes) {
  word& leads = *m.named_root(root, "block", 1).word;
  media::refresh(m, leads);
  typename Medium::publication change(m);
  change.release(m.resolve(media::pointer<char>(leads.load())), bytes);
  change.store(leads, 0);
  change.commit();
}

TEST_F(SharedFile, EntriesAreThereForOthersAndForTheNextOne) {
  const std::string path = made();
  {
    shared_file first(path, sharing::with_others), second(path, sharing::with_others);
    EXPECT_NE(first.host(), second.host());
    auto writer = pod::shared_dash<shared_file>::open(first);
    auto reader = pod::shared_dash<shared_file>::open(second);
    for (std::uint64_t key = 1; key <= 5000; ++key) ASSERT_EQ(writer.insert(key, key + 1), indexes::outcome::inserted);
    for (std::uint64_t key = 1; key <= 5000; ++key) ASSERT_EQ(reader.find(key), key + 1);
    EXPECT_EQ(first.used().allocated_bytes, writer.stats().medium_bytes);
  }
  shared_file alone(path, sharing::alone);
  EXPECT_EQ(media::hosts_of(alone), 1U);
  EXPECT_EQ(pod::shared_dash<shared_file>::open(alone).size(), 5000U);
}

TEST_F(SharedFile, OneHostAloneExcludesOthers) {
  const std::string path = made();
  std::optional<shared_file> some(std::in_place, path, sharing::with_others);
  EXPECT_NE(message_of([&] { shared_file(path, sharing::alone); }).find("is open on other hosts"), std::string::npos);
  some.reset();
  const shared_file alone(path, sharing::alone);
  EXPECT_NE(message_of([&] { shared_file(path, sharing::with_others); }).find("is open by one host alone"),
            std::string::npos);
}

// ---- deaths ----

// The kernel sends SIGKILL then.
void kill_this_process_in(long nanoseconds) {
  sigevent by{};
  by.sigev_notify = SIGEV_SIGNAL;
  by.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec at{};
  at.it_value.tv_nsec = nanoseconds;
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &by, &timer), 0);
  ASSERT_EQ(::timer_settime(timer, 0, &at, nullptr), 0);
}

// A process that joins, does work(memory), and is killed in there.
template <class Work>
void die_in(const std::string& path, Work&& work) {
  const exit_reason why = child_process::forked_for_its_parent([&] {
                            shared_file memory(path, sharing::with_others);
                            work(memory);
                            ::raise(SIGKILL);
                          }).wait();
  ASSERT_EQ(why.signal, SIGKILL);
}

TEST_F(SharedFile, ADeadHostIsKnownAndItsNumberIsNeverUsedAgain) {
  const std::string path = made();
  unsigned died = 0;
  {
    shared_file memory(path, sharing::with_others);
    died = memory.host() + 1;
    for (int round = 0; round < 3; ++round) {
      die_in(path, [](shared_file&) {});
      EXPECT_TRUE(memory.host_is_alive(memory.host()));
      EXPECT_FALSE(memory.host_is_alive(died));
      const shared_file next(path, sharing::with_others);
      EXPECT_NE(next.host(), died);
      EXPECT_TRUE(memory.host_is_alive(next.host()));
      EXPECT_FALSE(memory.host_is_alive(died));
      died = next.host();
    }
  }
  { const shared_file alone(path, sharing::alone); }
  const shared_file first(path, sharing::with_others), second(path, sharing::with_others);
  EXPECT_EQ(second.host(), died);  // it has left in order
}

TEST_F(SharedFile, ManyMayDieAndAsManyAsThereAreSlotsMayLive) {
  const std::string path = made();
  constexpr unsigned slots = pod::space_sizes{}.hosts;
  for (unsigned i = 0; i < 2 * slots; ++i) die_in(path, [](shared_file&) {});
  std::vector<std::unique_ptr<shared_file>> all;
  for (unsigned i = 0; i < slots; ++i) all.push_back(std::make_unique<shared_file>(path, sharing::with_others));
  EXPECT_NE(message_of([&] { shared_file(path, sharing::with_others); }).find("all 64 hosts that"), std::string::npos);
}

// An index of the space was not opened behind the death: its locks are inherited as ever.
TEST_F(SharedFile, LocksOutliveAnOpeningAloneThatOpensNoIndex) {
  const std::string path = made();
  {
    shared_file memory(path, sharing::with_others);
    static_cast<void>(pod::shared_tree<shared_file>::open(memory));
  }
  for (int round = 0; round < 10; ++round) {
    const exit_reason why = child_process::forked_for_its_parent([&] {
                              shared_file own(path, sharing::with_others);
                              auto index = pod::shared_tree<shared_file>::open(own);
                              kill_this_process_in(200'000);
                              for (std::uint64_t i = 0;; ++i) static_cast<void>(index.upsert(1, i));
                            }).wait();
    ASSERT_EQ(why.signal, SIGKILL);
    { const shared_file alone(path, sharing::alone); }
    shared_file memory(path, sharing::with_others);
    auto index = pod::shared_tree<shared_file>::open(memory);
    EXPECT_NE(index.upsert(1, 7), indexes::outcome::full);
    EXPECT_EQ(index.find(1), 7U);
  }
}

TEST_F(SharedFile, WhatADeadHostHadReservedIsFree) {
  const std::string path = made();
  shared_file memory(path, sharing::with_others);
  const std::uint64_t before = memory.used().allocated_bytes;
  die_in(path, [](shared_file& m) {
    // So much that no other host could allocate.
    shared_file::publication change(m);
    for (int i = 0; i < 15; ++i) static_cast<void>(change.allocate(mib / 4, 64));
    ::raise(SIGKILL);
  });
  EXPECT_EQ(memory.used().allocated_bytes, before);
  EXPECT_NE(block_at(memory, "large", 3 * mib + mib / 2), nullptr);
  EXPECT_EQ(memory.used().allocated_bytes, before + 3 * mib + mib / 2);
}

TEST_F(SharedFile, LocksOfADeadHostAreInherited) {
  const std::string path = made();
  shared_file memory(path, sharing::with_others);
  auto index = pod::shared_tree<shared_file>::open(memory);
  ASSERT_EQ(index.insert(1, 1), indexes::outcome::inserted);
  // Killed at any place: each operation holds a lock most of the time.
  for (int round = 0; round < 20; ++round) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    child_process writer = child_process::forked_for_its_parent([&] {
      shared_file own(path, sharing::with_others);
      auto same = pod::shared_tree<shared_file>::open(own);
      static_cast<void>(!::write(ends[1], "x", 1));
      for (std::uint64_t i = 0;; ++i) static_cast<void>(same.upsert(i % 8, i));
    });
    char begun = 0;
    ASSERT_EQ(::read(ends[0], &begun, 1), 1);
    ::close(ends[0]);
    ::close(ends[1]);
    for (int i = 0; i < 2000; ++i) static_cast<void>(index.upsert(1, 1));
    writer.kill();
    static_cast<void>(writer.wait());
    for (std::uint64_t key = 0; key < 8; ++key) EXPECT_NE(index.upsert(key, round), indexes::outcome::full);
  }
  EXPECT_TRUE(index.check().ok());
  EXPECT_EQ(memory.used().allocated_bytes, index.stats().medium_bytes);
}

// ---- blocks ----

TEST_F(SharedFile, BlocksOfManyChunksComeAndGo) {
  const std::string path = made();
  shared_file memory(path, sharing::with_others);
  for (int round = 0; round < 10; ++round) {
    ASSERT_NE(block_at(memory, "large", 2 * mib), nullptr);
    ASSERT_NE(block_at(memory, "small", 100), nullptr);
    EXPECT_EQ(memory.used().allocated_bytes, 2 * mib + 128);
    release(memory, "large", 2 * mib);
    release(memory, "small", 100);
    EXPECT_EQ(memory.used().allocated_bytes, 0U);
  }
}

TEST_F(SharedFile, AHostKeepsNoChunksThatItDoesNotNeed) {
  const std::string path = made();
  shared_file memory(path, sharing::with_others), other(path, sharing::with_others);
  const std::uint64_t all = memory.used().capacity_bytes;
  EXPECT_EQ(block_at(memory, "too_large", all + 1), nullptr);
  ASSERT_NE(block_at(other, "large", all), nullptr);
  release(other, "large", all);
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back("block" + std::to_string(i));
  for (const std::string& name : names) ASSERT_NE(block_at(memory, name.c_str(), mib / 4), nullptr);
  for (const std::string& name : names) release(memory, name.c_str(), mib / 4);
  // One chunk may stay with the host that had them.
  EXPECT_NE(block_at(other, "large", all / 2), nullptr);
}

// Its names of changes go on where the last host of the number has ended.
TEST_F(SharedFile, AHostThatComesAgainFreesWhatItHadAllocated) {
  const std::string path = made();
  const shared_file other(path, sharing::with_others);
  for (int round = 0; round < 10; ++round) {
    {
      shared_file first(path, sharing::with_others);
      ASSERT_NE(block_at(first, "block", 200), nullptr);
    }
    shared_file second(path, sharing::with_others);
    EXPECT_EQ(second.host(), other.host() + 1);
    release(second, "block", 200);
    EXPECT_EQ(second.used().allocated_bytes, 0U);
  }
}

TEST_F(SharedFile, AFullMemoryRefusesAndLosesNothing) {
  const std::string path = made(mib, mib);
  shared_file memory(path, sharing::with_others), other(path, sharing::with_others);
  auto index = pod::shared_tree<shared_file>::open(memory);
  auto same = pod::shared_tree<shared_file>::open(other);
  std::uint64_t key = 0;
  while (index.insert(key, key) == indexes::outcome::inserted) ++key;
  EXPECT_GT(key, 5000U);
  EXPECT_EQ(same.size(), key);
  EXPECT_TRUE(same.check().ok());
  EXPECT_EQ(other.used().allocated_bytes, same.stats().medium_bytes);
  EXPECT_EQ(same.erase(7), indexes::outcome::erased);
  EXPECT_EQ(index.insert(7, 7), indexes::outcome::inserted);
}

// Lines that let a test act in the middle of a call: before an access to the device.
struct watched_lines : pod::file_lines {
  using file_lines::file_lines;

  void fence() noexcept {
    file_lines::fence();
    tell('f', nullptr);
  }
  void refresh(const void* address, std::size_t bytes) noexcept {
    tell('r', address);
    file_lines::refresh(address, bytes);
  }
  [[nodiscard]] bool device_compare_exchange(word& at, std::uint64_t& expected, std::uint64_t desired) noexcept {
    tell('x', &at);
    return file_lines::device_compare_exchange(at, expected, desired);
  }

  inline static const watched_lines* who = nullptr;              // accesses of these alone
  inline static std::function<bool(char, const void*)> happens;  // false: not again

 private:
  void tell(char what, const void* address) {
    if (who != this) return;
    who = nullptr;
    if (happens(what, address)) who = this;
  }
};
using watched_file = pod::space<watched_lines>;

// The offset of a block that is allocated now.
std::uint64_t allocated(watched_file& m, std::size_t bytes) {
  watched_file::publication change(m);
  const void* const block = change.allocate(bytes, 64);
  if (block == nullptr) return 0;
  change.commit();
  return m.lines().offset_of(block);
}
void released(watched_file& m, std::uint64_t offset, std::size_t bytes) {
  watched_file::publication change(m);
  change.release(m.lines().at(offset), bytes);
  change.commit();
}
constexpr std::uint64_t chunk = pod::space_sizes{}.chunk_bytes;

// While a thread releases a block in a chunk of another host, that host allocates there again, and leaves. Another
// thread then makes the chunk this host's. What the first one has released is not free.
TEST_F(SharedFile, UnitsThatAreFreeAndAllocatedAgainWhileTheyAreReleasedStayAllocated) {
  const std::string path = made();
  watched_file mine(path, sharing::with_others), third(path, sharing::with_others);
  std::optional<watched_file> other(std::in_place, path, sharing::with_others);
  const std::uint64_t block = allocated(*other, chunk);
  while (allocated(third, chunk) != 0) {
  }
  const std::uint64_t before = mine.used().allocated_bytes;
  std::uint64_t again = 0;
  int fences = 0;
  watched_lines::happens = [&](char what, const void* /*at*/) {
    // It is released, and the log has ended.
    if (what != 'f' || mine.used().allocated_bytes + chunk != before || ++fences != 2) return true;
    again = allocated(*other, chunk / 2);
    other.reset();
    watched_file::publication dropped(mine);
    EXPECT_NE(dropped.allocate(64, 64), nullptr);
    return false;
  };
  watched_lines::who = &mine.lines();
  released(mine, block, chunk);
  watched_lines::who = nullptr;
  ASSERT_NE(again, 0U);
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t next = allocated(mine, chunk / 8);
    EXPECT_TRUE(next + chunk / 8 <= again || next >= again + chunk / 2) << next << " is in " << again;
  }
}

// Between the look at a chunk's owner and the exchange of its word the owner leaves, and the next host of its place has
// the chunk: it has another name, so the exchange fails.
TEST_F(SharedFile, AChunkHasOneOwnerAlthoughHostsOfAPlaceFollowEachOther) {
  const std::string path = made();
  std::optional<watched_file> first(std::in_place, path, sharing::with_others);
  watched_file mine(path, sharing::with_others);
  std::optional<watched_file> next;
  const void* owner = nullptr;
  std::uint64_t of_next = 0;
  int step = 0;
  watched_lines::happens = [&](char what, const void* at) {
    if (step == 0 && what == 'r') {  // looks whether the chunk has an owner
      owner = at;
      step = 1;
    } else if (step == 1 && at == owner) {  // and again, to have it: now it has one
      released(*first, allocated(*first, 64), 64);
      step = 2;
    } else if (step == 2 && what == 'r') {  // looks whether that one is gone: it is
      first.reset();
      step = 3;
    } else if (step == 3 && what == 'x') {  // takes the chunk
      next.emplace(path, sharing::with_others);
      of_next = allocated(*next, 64);
      step = 4;
    }
    return step != 4;
  };
  watched_lines::who = &mine.lines();
  const std::uint64_t of_mine = allocated(mine, 64);
  watched_lines::who = nullptr;
  ASSERT_EQ(step, 4);
  EXPECT_NE(of_mine / chunk, of_next / chunk);
}

// A space of few hosts, or of small chunks.
template <pod::space_sizes Sizes>
using sized_file = pod::space<pod::file_lines, Sizes>;
template <class Space>
std::string made_as(const std::string& path) {
  pod::host_file::make(path, {mib, mib, false}, pod::file_lines::bytes_beyond,
                       [](const std::string& unnamed) { const Space made(unnamed, sharing::alone); });
  return path;
}

TEST_F(SharedFile, AlignmentIsThatOfASmallChunkAtMost) {
  using small = sized_file<pod::space_sizes{.chunk_bytes = 1024, .hosts = 8}>;
  small memory(made_as<small>(folder_.file("small")), sharing::with_others);
  for (const std::size_t alignment : {64, 512, 1024, 2048, 4096})
    for (const std::size_t bytes : {64, 8192}) {
      small::publication change(memory);
      const void* const block = change.allocate(bytes, alignment);
      EXPECT_EQ(block != nullptr, alignment <= 1024) << alignment;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U) << alignment;
    }
}

TEST_F(SharedFile, AnAlignedBlockThatHasNoRoomLeavesTheRoomToOthers) {
  const std::string path = made();
  shared_file memory(path, sharing::with_others);
  shared_file::publication change(memory);
  // The free units of this chunk begin behind its last page.
  const auto* const most = static_cast<const char*>(change.allocate(chunk - 4032, 64));
  ASSERT_NE(change.allocate(64, 4096), nullptr);
  // The rest of the chunk that has that one.
  ASSERT_NE(change.allocate(chunk - 64, 64), nullptr);
  EXPECT_EQ(change.allocate(64, 64), most + (chunk - 4032));
}

// All places are those of hosts that have died at once, but for one, which works and needs none of what they had.
TEST_F(SharedFile, AHostThatLivesMakesRoomForOthersWhereAllHaveDied) {
  using few = sized_file<pod::space_sizes{.hosts = 4}>;
  const std::string path = made_as<few>(folder_.file("few"));
  few memory(path, sharing::with_others);
  EXPECT_FALSE(memory.recover_the_dead());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::vector<child_process> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(child_process::forked_for_its_parent([&] {
      const few own(path, sharing::with_others);
      static_cast<void>(!::write(ends[1], "x", 1));
      for (;;) ::pause();
    }));
    char joined = 0;
    ASSERT_EQ(::read(ends[0], &joined, 1), 1);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  for (child_process& other : others) {
    other.kill();
    static_cast<void>(other.wait());
  }
  EXPECT_NE(message_of([&] { few(path, sharing::with_others); }).find("let one that lives call recover_the_dead()"),
            std::string::npos);
  EXPECT_TRUE(memory.recover_the_dead());
  EXPECT_FALSE(memory.recover_the_dead());
  EXPECT_EQ(message_of([&] { few(path, sharing::with_others); }), "");
}

// ---- files ----

// Beyond the limit the kernel would end the process.
TEST_F(SharedFile, AFileBeyondTheLimitOfTheProcessIsRefused) {
  const std::string path = folder_.file("long");
  const exit_reason why = child_process::forked_for_its_parent([&] {
                            const struct rlimit little { mib, mib };
                            if (::setrlimit(RLIMIT_FSIZE, &little) != 0) ::_exit(1);
                            const std::string text = message_of([&] { pod::make_shared_file(path, 2 * mib, 2 * mib); });
                            ::_exit(text.starts_with(path) && text.find("ulimit -f") != std::string::npos ? 7 : 2);
                          }).wait();
  EXPECT_EQ(why.status, 7) << why.text();
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
}

TEST_F(SharedFile, AFileIsMadeWholeOrNotAtAll) {
  const std::string path = made();
  EXPECT_EQ(message_of([&] { pod::make_shared_file(path, 4 * mib, 4 * mib); }),
            path + " exists; remove it, or take another name");
  const std::string small = folder_.file("small");
  EXPECT_EQ(
      message_of([&] { pod::make_shared_file(small, 65536, 65536); }).find("shared_file:" + small + " is too small"),
      0U);
  EXPECT_NE(message_of([&] { pod::make_shared_file(small, 4 * mib, 65536); }).find("is too small to be shared"),
            std::string::npos);
  EXPECT_NE(message_of([&] { pod::make_shared_file(small, mib, mib / 2 + 64); }).find("is not made of pages"),
            std::string::npos);
  EXPECT_NE(message_of([&] { pod::make_shared_file(small, mib, 8 * mib); }).find("8388608 cannot be coherent"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] { pod::make_shared_file<pod::stale_lines>(small, mib, 8 * mib); }).find("cannot be coherent"),
      std::string::npos);
  EXPECT_NE(message_of([&] { pod::make_shared_file(folder_.file("no/file"), mib, mib); }).find("cannot make"),
            std::string::npos);
  // Nothing is left of those.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(path).parent_path()))
    ++files;
  EXPECT_EQ(files, 1U);
}

TEST_F(SharedFile, OtherAndDamagedFilesAreRefused) {
  const auto refused = [&](const std::string& path) {
    return message_of([&] { shared_file(path, sharing::with_others); });
  };
  EXPECT_NE(refused(folder_.file("none")).find("cannot open"), std::string::npos);
  const std::string text = folder_.file("text");
  std::ofstream(text) << "no memory";
  EXPECT_NE(refused(text).find("is no memory of several hosts"), std::string::npos);
  const std::string path = made();
  EXPECT_NE(message_of([&] { stale_file(path, sharing::with_others); }).find("is not made for hosts with stale copies"),
            std::string::npos);
  for (std::size_t byte = 0; byte < 48; ++byte) {
    const std::string damaged = folder_.file("damaged");
    std::filesystem::copy_file(path, damaged, std::filesystem::copy_options::overwrite_existing);
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(byte));
    const int before = file.get();
    file.seekp(static_cast<std::streamoff>(byte));
    file.put(static_cast<char>(before ^ 4));
    file.close();
    EXPECT_NE(refused(damaged), "") << byte;
  }
  std::filesystem::resize_file(path, 3 * mib);
  EXPECT_NE(refused(path).find("was cut short"), std::string::npos);
}

// ---- copies that are stale ----

// Locks that a dead host held are freed by the next one that has it alone, on the device.
template <template <class> class Index>
void expect_no_lock_outlives_the_dead(const std::string& path) {
  for (int round = 0; round < 20; ++round) {
    {
      stale_file memory(path, sharing::alone);
      static_cast<void>(Index<stale_file>::open(memory));
    }
    const exit_reason why = child_process::forked_for_its_parent([&] {
                              stale_file own(path, sharing::with_others, std::uint64_t(round));
                              auto index = Index<stale_file>::open(own);
                              kill_this_process_in(100'000);
                              for (std::uint64_t i = 0;; ++i) static_cast<void>(index.upsert(i % 3, i));
                            }).wait();
    ASSERT_EQ(why.signal, SIGKILL);
    {
      stale_file memory(path, sharing::alone);
      static_cast<void>(Index<stale_file>::open(memory));
    }
    stale_file memory(path, sharing::with_others);
    auto index = Index<stale_file>::open(memory);
    for (std::uint64_t key = 0; key < 3; ++key) EXPECT_NE(index.upsert(key, 7), indexes::outcome::full);
  }
}
template <class Medium>
using plain_tree = pod::shared_tree<Medium>;
template <class Medium>
using plain_dash = pod::shared_dash<Medium>;

class StaleCopies : public SharedFile {
 protected:
  std::string made_stale(std::uint64_t coherent) {
    const std::string path = folder_.file("stale");
    pod::make_shared_file<pod::stale_lines>(path, mib / 2, coherent);
    return path;
  }
};

// Stores to a block that was never published are not written back over the next owner's.
TEST_F(StaleCopies, ABlockThatWasGivenBackIsInNoCache) {
  const std::string path = made_stale(0);
  stale_file first(path, sharing::with_others), second(path, sharing::with_others);
  // The one chunk that it keeps.
  ASSERT_NE(block_at(first, "kept", 64), nullptr);
  for (int round = 0; round < 100; ++round) {
    {
      stale_file::publication change(first);
      auto* const words = static_cast<word*>(change.allocate(65536, 64));
      ASSERT_NE(words, nullptr);
      for (std::size_t i = 0; i < 65536 / sizeof(word); i += 8) words[i].store(1);
    }
    auto* const mine = reinterpret_cast<std::array<word, 8192>*>(block_at(second, "block", 65536));
    ASSERT_NE(mine, nullptr);
    for (word& w : *mine) w.store(2);
    media::publish(second, *mine);
    for (int i = 0; i < 100; ++i) first.fence();
    media::refresh(second, *mine);
    for (word& w : *mine) ASSERT_EQ(w.load(), 2U);
    release(second, "block", 65536);
  }
}

TEST_F(StaleCopies, AFileWithoutItsDeviceIsRefused) {
  const std::string path = made_stale(0);
  std::filesystem::resize_file(path, mib);
  EXPECT_NE(message_of([&] { stale_file(path, sharing::alone); }).find("was cut short"), std::string::npos);
}

// Whether `second` sees 1 in a word of `first`, behind publish and refresh as told, in each of some tries.
struct seen {
  int always = 0, never = 0;
};
seen tries_of(const std::string& path, bool publishes, bool refreshes) {
  seen result;
  constexpr int tries = 50;
  for (int i = 0; i < tries; ++i) {
    stale_file first(path, sharing::with_others, std::uint64_t(i)),
        second(path, sharing::with_others, std::uint64_t(i));
    auto& here = *reinterpret_cast<word*>(block_at(first, "block", 64));
    auto& there = *reinterpret_cast<word*>(block_at(second, "block", 64));
    here.store(0);
    media::publish(first, here);
    media::refresh(second, there);
    here.store(1);
    if (publishes) media::publish(first, here);
    if (refreshes) media::refresh(second, there);
    ++(there.load() == 1 ? result.always : result.never);
  }
  return result;
}

TEST_F(StaleCopies, AStoreIsSeenBehindPublishAndRefreshAlone) {
  for (const std::uint64_t coherent : {std::uint64_t{0}, mib / 4}) {
    const std::string path = made_stale(coherent);
    EXPECT_EQ(tries_of(path, true, true).never, 0);
    EXPECT_GT(tries_of(path, true, false).never, 25);
    EXPECT_GT(tries_of(path, false, true).never, 25);
    std::filesystem::remove(path);
  }
}

TEST_F(StaleCopies, LocksOfTheDeadAreFreedOnTheDevice) {
  for (const std::uint64_t coherent : {std::uint64_t{0}, mib / 4}) {
    const std::string path = made_stale(coherent);
    expect_no_lock_outlives_the_dead<plain_tree>(path);
    expect_no_lock_outlives_the_dead<plain_dash>(path);
    expect_no_lock_outlives_the_dead<pod::shared_ring>(path);
    std::filesystem::remove(path);
  }
}

TEST_F(StaleCopies, AWriteBackTakesAllOfItsLine) {
  const std::string path = made_stale(0);
  int clobbered = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    stale_file first(path, sharing::with_others, seed), second(path, sharing::with_others, seed + 1000);
    auto* const here = reinterpret_cast<word*>(block_at(first, "block", 64));
    auto* const there = reinterpret_cast<word*>(block_at(second, "block", 64));
    for (int i = 0; i < 2; ++i) here[i].store(0);
    media::publish(first, *reinterpret_cast<std::array<word, 8>*>(here));
    media::refresh(second, *reinterpret_cast<std::array<word, 8>*>(there));
    here[0].store(1);
    there[1].store(2);
    media::publish(first, here[0]);
    media::publish(second, there[1]);
    media::refresh(first, here[0]);
    EXPECT_EQ(here[1].load(), 2U);
    if (here[0].load() == 0) ++clobbered;
  }
  EXPECT_GT(clobbered, 25);
}

TEST_F(StaleCopies, WordsOfTheDeviceAreExchangedAroundTheCopies) {
  for (const std::uint64_t coherent : {std::uint64_t{0}, mib / 4}) {
    const std::string path = made_stale(coherent);
    constexpr std::uint64_t rounds = 1000;
    {
      stale_file memory(path, sharing::with_others);
      *reinterpret_cast<word*>(block_at(memory, "count", 64)) = 0;
      media::publish(memory, *reinterpret_cast<word*>(block_at(memory, "count", 64)));
    }
    std::vector<child_process> hosts;
    for (std::uint64_t h = 0; h < 3; ++h)
      hosts.push_back(child_process::forked_for_its_parent([&, h] {
        stale_file memory(path, sharing::with_others, h);
        auto& count = *reinterpret_cast<word*>(block_at(memory, "count", 64));
        for (std::uint64_t i = 0; i < rounds; ++i) {
          std::uint64_t now = 0;
          while (!media::device_compare_exchange(memory, count, now, now + 1)) {
          }
        }
      }));
    for (child_process& host : hosts) EXPECT_TRUE(host.wait().is_success());
    stale_file memory(path, sharing::with_others);
    auto& count = *reinterpret_cast<word*>(block_at(memory, "count", 64));
    media::refresh(memory, count);
    EXPECT_EQ(count.load(), 3 * rounds);
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace pmlab::tests
