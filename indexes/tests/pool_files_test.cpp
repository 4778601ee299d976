// Files that are no pool, or no longer one: opening them is an error with a message, or it is sound. It never faults,
// hangs or harms the file.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "support/campaign.hpp"
#include "support/child_process.hpp"
#include "support/comparison.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {
namespace {

constexpr std::uint64_t pool_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t entries = 5000;

using file_content = std::vector<char>;

file_content read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const file_content& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
}

// A flag that a child raises and its parent sees, even if the child dies.
class shared_flag {
 public:
  shared_flag()
      : flag_(static_cast<std::atomic<bool>*>(
            ::mmap(nullptr, sizeof *flag_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  shared_flag(const shared_flag&) = delete;
  shared_flag& operator=(const shared_flag&) = delete;
  ~shared_flag() { ::munmap(flag_, sizeof *flag_); }

  void raise() const noexcept { flag_->store(true); }
  [[nodiscard]] bool is_raised() const noexcept { return flag_->load(); }

 private:
  std::atomic<bool>* flag_;
};

// Where libpmemobj keeps its own words in a pool of this size: the lanes (redo and undo logs, 1024 of 3 KB), the
// heap's header, the zone's header with its chunk headers (8 bytes for each of 65528 chunks), all in front of the heap.
// It follows them without a check when it opens a pool: a flipped byte there can make `pmemobj_open` itself fault or
// hang, before any line of pmlab runs. (Runs of small blocks have headers within the heap too.)
constexpr std::size_t allocator_words_begin = 8192;
constexpr std::size_t allocator_words_end = allocator_words_begin + 1024 * 3072 + 1024 + 64 + 65528 * 8;

template <class Kind>
class pool_files : public testing::Test {
 protected:
  using index_type = typename Kind::template index<media::pmem>;

  pool_files() {
    {
      media::pmem medium(path_, {.create_bytes = pool_bytes, .huge_pages = false});
      auto index = index_type::open(medium);
      for (std::uint64_t key = 0; key < entries; ++key) {
        if (index.insert(key, ~key) != indexes::outcome::inserted) throw std::runtime_error("the pool is too small");
        model_[key] = ~key;
      }
    }
    sound_ = read_file(path_);
  }

  // Opens the file at the path, as a program would, in a child. "sound", "error: <what>", or the failure.
  // `contents_may_differ`: bytes of entries may have been hit, which no index can notice.
  std::string open(bool contents_may_differ = true) {
    const shared_flag libpmemobj_has_opened;
    const child_end end = run_in_child(
        [&]() -> std::string {
          try {
            media::pmem medium(path_, {.huge_pages = false});
            libpmemobj_has_opened.raise();
            auto index = index_type::open(medium);
            if (!index.check().ok()) return "error: check() finds it";
            std::string wrong = compare_all(index, model_);
            return wrong.empty() || contents_may_differ ? "sound" : "wrong: " + wrong;
          } catch (const error& e) {
            return std::string("error: ") + e.what();
          }
        },
        std::chrono::seconds(20));
    if (end.end == child_end::how::returned) return end.text;
    return (libpmemobj_has_opened.is_raised() ? "" : "within libpmemobj: ") + end.describe();
  }

  // Flips one to eight bits of bytes in [from, to) that are in use, and opens the pool. Returns the result of `open`,
  // and the places.
  std::pair<std::string, std::string> open_with_flips(std::uint64_t seed, std::size_t from, std::size_t to) {
    random source(seed);
    file_content content = sound_;
    std::string where;
    const std::uint64_t flips = 1 + source.below(8);
    for (std::uint64_t i = 0; i < flips; ++i) {
      std::size_t at = from + source.below(to - from);
      for (int tries = 0; tries < 1000 && content[at] == 0; ++tries) at = from + source.below(to - from);
      content[at] = static_cast<char>(content[at] ^ (1 << source.below(8)));
      where.append(" ").append(std::to_string(at));
    }
    write_file(path_, content);
    return {open(), where};
  }

  // The error names the file, and opening it changed nothing.
  void expect_error(const file_content& content) {
    write_file(path_, content);
    expect_error_of(open());
    EXPECT_EQ(read_file(path_) == content, true) << "the file was changed";
  }

  void expect_error_of(const std::string& said) {
    EXPECT_TRUE(said.starts_with("error: ")) << said;
    EXPECT_NE(said.find(path_), std::string::npos) << said;
    EXPECT_NE(said.find("; "), std::string::npos) << "no remedy: " << said;
  }

  temporary_folder folder_;
  std::string path_ = folder_.file("pool");
  contents model_;
  file_content sound_;
};

TYPED_TEST_SUITE(pool_files, offered_kinds, setting_name);

TYPED_TEST(pool_files, A8_an_untouched_pool_opens) { EXPECT_EQ(this->open(false), "sound"); }

TYPED_TEST(pool_files, empty_short_and_foreign_files_are_errors) {
  this->expect_error({});
  this->expect_error(file_content(100, 'x'));
  this->expect_error(file_content(pool_bytes, '\0'));
  this->expect_error(file_content(pool_bytes, 'x'));
}

TYPED_TEST(pool_files, truncated_pools_are_errors) {
  for (const std::size_t left :
       {std::size_t{1}, std::size_t{4096}, std::size_t{8192}, pool_bytes / 2, pool_bytes - 1}) {
    write_file(this->path_, {this->sound_.begin(), this->sound_.begin() + static_cast<std::ptrdiff_t>(left)});
    this->expect_error_of(this->open());
    // libpmemobj may have noted in the header that the pool was opened; but nothing is lost by it.
    file_content mended = read_file(this->path_);
    ASSERT_EQ(mended.size(), left);
    mended.insert(mended.end(), this->sound_.begin() + static_cast<std::ptrdiff_t>(left), this->sound_.end());
    write_file(this->path_, mended);
    EXPECT_EQ(this->open(false), "sound") << "after " << left << " bytes were opened and the others put back";
  }
}

TYPED_TEST(pool_files, a_zeroed_header_is_an_error) {
  file_content content = this->sound_;
  std::fill_n(content.begin(), 4096, '\0');
  this->expect_error(content);
}

TYPED_TEST(pool_files, a_directory_or_nothing_is_an_error) {
  std::filesystem::remove(this->path_);
  std::string said = this->open();
  EXPECT_TRUE(said.starts_with("error: ")) << said;
  std::filesystem::create_directory(this->path_);
  said = this->open();
  EXPECT_TRUE(said.starts_with("error: ")) << said;
  EXPECT_TRUE(std::filesystem::is_directory(this->path_));
}

TYPED_TEST(pool_files, another_index_or_version_is_an_error_and_the_pool_stays_whole) {
  const auto opens_as = [&](const char* layout, std::uint64_t version) {
    const child_end end = run_in_child(
        [&]() -> std::string {
          media::pmem medium(this->path_, {.huge_pages = false});
          try {
            (void)medium.named_root(TypeParam::template index<media::pmem>::layout_name, layout, version);
            return "opened";
          } catch (const error& e) {
            return std::string("error: ") + e.what();
          }
        },
        std::chrono::seconds(20));
    return end.text;
  };
  EXPECT_TRUE(opens_as("reference", 1).starts_with("error: "));
  EXPECT_TRUE(
      opens_as(std::string(TypeParam::template index<media::pmem>::layout_name).c_str(), 77).starts_with("error: "));
  EXPECT_EQ(this->open(false), "sound");
}

// Bytes flipped where the indexes keep theirs: found out or harmless, and nothing else.
TYPED_TEST(pool_files, flipped_bytes_never_fault_or_hang) {
  std::size_t within_libpmemobj = 0;
  const std::vector<std::uint64_t> all = seeds(80);
  for (const std::uint64_t seed : all) {
    const auto [said, where] = this->open_with_flips(seed, allocator_words_end, pool_bytes);
    within_libpmemobj += said.starts_with("within libpmemobj: ");
    EXPECT_TRUE(said == "sound" || said.starts_with("error: ") || said.starts_with("within libpmemobj: "))
        << said << " after flips at" << where << "\nreplay: " << replay_command(seed);
  }
  // Headers of runs lie among the blocks; more than a few faults there would be something else.
  EXPECT_LE(within_libpmemobj, 1 + all.size() / 20);
}

// Bytes flipped in libpmemobj's own words: once it has opened the pool, the index neither faults nor hangs.
TYPED_TEST(pool_files, flipped_bytes_in_the_allocators_words_harm_no_index) {
  for (const std::uint64_t seed : seeds(40)) {
    const auto [said, where] = this->open_with_flips(seed, 0, allocator_words_end);
    EXPECT_TRUE(said == "sound" || said.starts_with("error: ") || said.starts_with("within libpmemobj: "))
        << said << " after flips at" << where << "\nreplay: " << replay_command(seed);
  }
}

}  // namespace
}  // namespace pmlab::tests
