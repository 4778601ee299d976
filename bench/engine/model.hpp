// The expected answer of every key: the benchmark's model of the index, for --verify.
#pragma once

#include <pmlab/indexes/index.hpp>
#include "bench/catalogue/subject.hpp"
#include "bench/workload/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::bench {

// Every key has one thread that writes it, its owner, so that the owner knows the expected answer exactly, and the
// others know between which two of its values. Every value contains the number of its write (value_of in
// bench/workload/keys.hpp), so that the time of a value's write is known.
//
// A run has rounds: `prepare` sees all operations of a round before it starts (REQUIRES: nothing else runs); then each
// thread passes its answers to `check`, in the order of its operations. Operations that a round did not execute any
// more (time was up) may be missing at the end of a thread's operations.
class model {
 public:
  explicit model(unsigned threads) : threads_(threads) {}

  // Gives every write its value, and records the changes of the round. `operations[t]` are those of thread t; every
  // write must belong to the thread that owns its key (ownership.hpp).
  void prepare(std::vector<std::vector<workload::operation>>& operations);

  // Compares the answers of `thread` with the expected ones. `scanned`: the entries of its scans, one after the other.
  // Returns the number of wrong answers. Threads may call it concurrently.
  std::uint64_t check(unsigned thread, std::span<const workload::operation> operations, std::span<const answer> answers,
                      std::span<const indexes::entry> scanned);

  // Adds a key that was present before the run. Returns false if `value` was not written by a run of pmlab.
  bool adopt(indexes::key_type key, indexes::value_type value);

  // Keys that must be there now.
  [[nodiscard]] std::uint64_t entries() const;

  // The first wrong answers, in words.
  [[nodiscard]] const std::vector<std::string>& first_wrong() const noexcept { return first_wrong_; }

 private:
  // A key's state. The owner writes `now_*` while a round runs; the others read only the rest, or, of a key that the
  // round does not touch, `now_*`.
  struct slot {
    std::uint64_t key = 0;
    std::uint32_t start_sequence = 0;  // when the round began
    std::uint32_t now_sequence = 0;    // after the owner's last checked operation
    std::uint32_t last_sequence = 0;   // sequence of the last write that the round may make
    std::uint32_t round = 0;           // the last one that writes this key
    bool used = false;
    bool start_present = false;
    bool now_present = false;
    bool comes_or_goes = false;  // the round may insert or erase it
  };

  // The possible answers of one thread for a key.
  struct expectation {
    bool may_be_there = false;
    bool must_be_there = false;
    std::uint32_t first_sequence = 0;
    std::uint32_t last_sequence = 0;
  };

  struct sorted_key {
    std::uint64_t key;
    std::size_t slot;
  };

  [[nodiscard]] slot* find(std::uint64_t key) noexcept;
  slot& find_or_add(std::uint64_t key);
  void grow();
  void sort_keys();

  [[nodiscard]] expectation expect(unsigned thread, const slot* s) const noexcept;
  [[nodiscard]] static std::string wrong_value(const expectation& e, std::uint64_t key, bool found,
                                               std::uint64_t value);
  [[nodiscard]] std::string wrong_write(const workload::operation& op, indexes::outcome result);
  [[nodiscard]] std::string wrong_scan(unsigned thread, const workload::operation& op,
                                       std::span<const indexes::entry> entries);
  void report(unsigned thread, const workload::operation& op, const std::string& problem);

  unsigned threads_;
  std::uint32_t round_ = 0;
  std::uint32_t sequence_ = 0;  // the last one given out
  std::vector<slot> slots_;
  std::size_t used_ = 0;
  std::vector<sorted_key> sorted_;  // for scans: all keys of slots_, ascending
  bool sorted_is_current_ = false;
  std::mutex report_mutex_;
  std::vector<std::string> first_wrong_;
};

}  // namespace pmlab::bench
