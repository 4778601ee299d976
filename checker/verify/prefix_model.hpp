// The history of a store whose crashes may take the newest changes, but only these.
//
// A change returns its sequence, so the order of the changes that returned is known. The model checks that it is an
// order that the calls allow. The sequence of a change under way is not known: it may be at any place that the others
// leave free, or not be there. A crash may leave the state after any sequence that is not below the promised one.
//
// A read sees the state after one sequence: its moment, between its call and its return. When the run is over, all
// sequences are known, and so are the moments that explain each read: no change that had returned before the call is
// behind the moment, none that was called after the return is before it, and a read that is called after another one
// has returned does not have an older moment. A batch is seen whole, since no moment lies within it. A snapshot is a
// read that may last: all that is seen in it has one moment, between call and return of what made it.
#pragma once

#include "checker/verify/prefix.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

struct prefix_step {
  enum class action : std::uint8_t { apply, apply_synced, sync, pass, compact, get, walk, hold, look };
  action what = action::apply;
  std::vector<prefix_change> changes{};
  std::uint64_t amount = 0;  // time, a key, 1: backward, or a prefix_look
};

[[nodiscard]] std::string to_string(const prefix_step& s);

// Thread safety: none.
class prefix_model {
 public:
  explicit prefix_model(std::uint64_t bound_milliseconds) : bound_(bound_milliseconds) {}

  // The content before anything else happens.
  void there_before(prefix_state state, std::uint64_t sequence);

  void called(unsigned thread, const prefix_step& s);
  // "" or why the answer is wrong. `sequence`: of a change; 0: no room.
  std::string changed(unsigned thread, const prefix_step& s, std::uint64_t sequence);
  // A step other than a change returned.
  void returned(unsigned thread, const prefix_step& s);

  // "" or why a crash now must not leave this.
  std::string judge(const prefix_state& found);
  // What a read saw between the last `called` of the thread and now. Call it before `returned`.
  void saw(unsigned thread, std::vector<prefix_change> seen);
  // The thread has made a snapshot in between, in place of its last one; call it before `returned`. And what it saw in
  // it.
  void held(unsigned thread);
  void saw_in_snapshot(unsigned thread, std::span<const prefix_change> seen);
  // "" or which read no order of the operations explains. REQUIRES: nothing is under way.
  [[nodiscard]] std::string judge_reads() const;
  // The state when nothing is under way.
  [[nodiscard]] prefix_state now() const;
  // True: a change that was called wrote this number to the key.
  [[nodiscard]] bool was_written(std::uint32_t key, std::uint32_t number) const;

  [[nodiscard]] std::uint64_t version() const noexcept { return clock_; }
  [[nodiscard]] std::string under_way() const;

 private:
  struct operation {
    std::vector<prefix_change> changes{};
    std::uint64_t after = 0;  // greater than the sequences that had returned when it was called
    std::uint64_t time = 0;   // time of its return
    std::string text{};
    std::uint64_t floor_of_sync = 0;  // what had returned when a sync was called
    bool is_running = false;
    std::uint64_t called = 0;  // on `clock_`
  };
  struct read {
    std::string text{};
    std::uint64_t after = 0;     // the greatest sequence that had returned when it was called
    std::uint64_t called = 0;    // on `clock_`
    std::uint64_t returned = 0;  // on `clock_`
    std::vector<prefix_change> seen{};
  };
  // A change that has returned, or a batch.
  struct made_change {
    std::vector<prefix_change> changes{};
    std::uint64_t called = 0;
  };

  void add_read(unsigned thread, std::vector<prefix_change> seen);
  void promise(std::uint64_t sequence);
  void walk(std::uint64_t at, prefix_state& state, std::set<unsigned>& used);
  static void make(const std::vector<prefix_change>& changes, prefix_state& state);

  std::uint64_t bound_;
  prefix_state base_ = prefix_state(prefix_keys);
  std::uint64_t base_sequence_ = 0;
  std::map<std::uint64_t, operation> done_;  // by the first sequence
  std::vector<operation> running_;           // by thread
  prefix_state first_ = prefix_state(prefix_keys);
  std::uint64_t first_sequence_ = 0;
  std::map<std::uint64_t, made_change> made_;  // all since then, by the last sequence
  std::vector<read> reads_;                    // in the order of their returns
  std::vector<std::size_t> snapshots_;         // by thread: one of the reads, from 1; 0: none
  std::uint64_t returned_ = 0;                 // the greatest sequence that returned
  std::uint64_t promised_ = 0;                 // is durable
  std::uint64_t time_ = 0;                     // milliseconds
  std::uint64_t clock_ = 1;
  std::uint64_t known_at_ = 0;  // the clock of `reachable_`
  std::set<prefix_state> reachable_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> written_;
};

}  // namespace pmlab::verify
