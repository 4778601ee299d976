// A process that inserts through a library for PiBench is killed with SIGKILL: every answered insert is in the pool
// that the library opens next.
#include <pmlab/base/child_process.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/tests/pibench/loaded.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {
namespace {

constexpr std::uint64_t threads = 2;

// In memory that the child shares with the test: how many of each thread's inserts were answered.
using answered = std::array<std::atomic<std::uint64_t>, threads>;

// Entries are words, or a key of 24 bytes with a value of 100.
enum class entries : std::uint8_t { words, strings };

std::string bytes_of(std::uint64_t word, std::size_t size) {
  std::string text(size, '-');
  std::memcpy(text.data() + size - sizeof word, &word, sizeof word);
  return text;
}
std::string key_of(std::uint64_t i, std::uint64_t thread, const tree_options_t& options) {
  return bytes_of((i * threads + thread) * 0x9e3779b97f4a7c15U, options.key_size);
}
std::string value_of(std::uint64_t i, const tree_options_t& options) { return bytes_of(i, options.value_size); }

tree_options_t options_of(const std::string& pool, entries what) {
  tree_options_t options = pool_at(pool);
  if (what == entries::strings) {
    options.key_size = 24;
    options.value_size = 100;
  }
  return options;
}

// The hidden command line of the child: --insert LIBRARY POOL FILE-DESCRIPTOR words|strings.
constexpr const char* child_argument = "--insert";

answered* map(int file) {
  void* const area = ::mmap(nullptr, sizeof(answered), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return area == MAP_FAILED ? nullptr : static_cast<answered*>(area);
}

int insert_until_killed(char** arguments) {
  answered* const counts = map(std::atoi(arguments[2]));
  if (counts == nullptr) return 3;
  const bool words = std::string_view(arguments[3]) == "words";
  const tree_options_t options = options_of(arguments[1], words ? entries::words : entries::strings);
  tree_of_bytes t(arguments[0], options);
  std::vector<std::thread> running;
  for (std::uint64_t thread = 0; thread < threads; ++thread)
    running.emplace_back([&, thread] {
      std::atomic<std::uint64_t>& count = (*counts)[thread];
      for (std::uint64_t i = count; t.insert(key_of(i, thread, options), value_of(i, options)); ++i) count = i + 1;
    });
  for (std::thread& thread : running) thread.join();
  return 4;
}

class killed : public testing::TestWithParam<std::tuple<std::string, entries>> {
 protected:
  killed() {
    file_ = ::memfd_create("pmlab-answered", 0);
    if (file_ < 0 || ::ftruncate(file_, sizeof(answered)) != 0) throw std::runtime_error("cannot make shared memory");
    counts_ = map(file_);
    if (counts_ == nullptr) throw std::runtime_error("cannot map shared memory");
  }
  killed(const killed&) = delete;
  killed& operator=(const killed&) = delete;
  ~killed() override {
    ::munmap(counts_, sizeof(answered));
    ::close(file_);
  }

  // Kills a child after `more` answers.
  void run_and_kill(std::uint64_t more) {
    const std::uint64_t until = total() + more;
    const std::string pool = folder_.file("pool");
    const auto& [library, what] = GetParam();
    child_process child = child_process::of_program(
        "/proc/self/exe",
        {"test", child_argument, library, pool, std::to_string(file_), what == entries::words ? "words" : "strings"});
    while (total() < until) {
      ASSERT_FALSE(child.ended()) << "the child ended by itself, with " << child.wait().text();
      ::usleep(100);
    }
    child.kill();
    const exit_reason reason = child.wait();
    ASSERT_NE(reason.signal, 0) << "the child ended by itself, with " << reason.text();
  }

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const auto& count : *counts_) sum += count;
    return sum;
  }

  temporary_folder folder_;
  int file_ = -1;
  answered* counts_ = nullptr;
};

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, entries>>& test) {
  return std::get<0>(test.param) + (std::get<1>(test.param) == entries::words ? "" : "_of_strings");
}

INSTANTIATE_TEST_SUITE_P(pibench, killed,
                         testing::Combine(testing::ValuesIn(library_names()),
                                          testing::Values(entries::words, entries::strings)),
                         name_of);

TEST_P(killed, keep_what_was_answered) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(run_and_kill(3'000));
    const auto& [library, what] = GetParam();
    const tree_options_t options = options_of(folder_.file("pool"), what);
    tree_of_bytes t(library, options);
    for (std::uint64_t thread = 0; thread < threads; ++thread) {
      std::atomic<std::uint64_t>& count = (*counts_)[thread];
      for (std::uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(t.find(key_of(i, thread, options)), value_of(i, options)) << "round " << round;
      // The one that was under way is present or absent; the next child continues behind it.
      const auto found = t.find(key_of(count, thread, options));
      if (!found) continue;
      ASSERT_EQ(*found, value_of(count, options)) << "round " << round;
      ++count;
    }
  }
}

}  // namespace
}  // namespace pmlab::tests

int main(int count, char** arguments) {
  if (count == 6 && std::strcmp(arguments[1], pmlab::tests::child_argument) == 0)
    return pmlab::tests::insert_until_killed(arguments + 2);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
