// The history model: the results returned to the threads of a run, key by key. A crash image, or the index at the end
// of the run, is checked against it.
//
// A key is a register that may be empty. While operations on it overlap, the model keeps every possible course: which
// operations under way have taken effect, their results, and the resulting state. A result rules out the courses that
// do not give it; if none is left, no order of the operations explains the results. After a crash, a key may be in any
// state that a course has reached, or reaches by letting more of the operations under way take effect: strict durable
// linearizability. Linearizability is local, so keys are checked one by one.
#pragma once

#include "checker/verify/operations.hpp"
#include <pmlab/indexes/index.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::verify {

// Thread safety: none.
class history_model {
 public:
  static constexpr std::size_t most_threads = 16;

  // `keys`: all that the run will use, ascending. None of them is in the index.
  explicit history_model(std::vector<std::uint64_t> keys);

  // An entry that is in the index before anything else happens.
  void there_before(const indexes::entry& e);
  // An operation of `thread` begins; and ends. `returned` gives "" or why the answer is wrong.
  // `coming`: its answer where that is known, since the history is over. Courses that lead to another answer are then
  // dropped at once: while one operation is under way, others may leave thousands of states.
  void called(unsigned thread, const step& s, const answer* coming = nullptr);
  std::string returned(unsigned thread, const step& s, const answer& got);

  // A scan of [from, ...) that requested `wanted` entries: every key of its range counts as read in between.
  void scan_called(unsigned thread, std::uint64_t from);
  std::string scan_returned(unsigned thread, std::uint64_t from, std::size_t wanted,
                            std::span<const indexes::entry> got);

  // An iterator over all keys. Each key that it met was present at a moment in between, each other one was absent at a
  // moment. It meets none twice.
  void iterate_called(unsigned thread);
  std::string iterate_returned(unsigned thread, std::span<const std::uint64_t> got);

  // Several finds that overlap; a key may be among them twice.
  void batch_called(unsigned thread, std::span<const std::uint64_t> keys);
  std::string batch_returned(unsigned thread, std::span<const std::uint64_t> keys,
                             std::span<const std::optional<std::uint64_t>> got);

  // A load of these entries: each of them is inserted by itself, in their order; the last call of it processed `done`
  // of them.
  void load_called(unsigned thread, std::span<const indexes::entry> ascending);
  std::string load_returned(unsigned thread, std::size_t done);

  // The thread's host has died: its change under way, if there is one, has taken effect, or does so until a survivor
  // has repaired the key. It is decided when a change of the key has returned that began behind the death.
  void died(unsigned thread);
  // All changes of threads that died have taken effect or never will: these are the entries now.
  void settled(std::span<const indexes::entry> found);

  // The process was killed, and the next one finds these entries. What operations under way did may be in the caches
  // alone. It was never acknowledged: a crash may take it back, also if it was seen since, until a change of the key is
  // acknowledged.
  void go_on_after_kill(std::span<const indexes::entry> found);

  // "" or why the index must not hold these entries (ascending, equal keys side by side), behind a crash or at the end.
  std::string judge(std::span<const indexes::entry> entries, bool is_crashed = true);

  // Grows whenever something is promised, or may newly have happened.
  [[nodiscard]] std::uint64_t version() const noexcept { return clock_; }
  // Every key's state, where `judge` has just accepted these entries.
  [[nodiscard]] const std::vector<std::uint64_t>& keys() const noexcept { return keys_; }
  // Keys that an operation under way is about, scans and iterators left out.
  [[nodiscard]] std::vector<std::uint64_t> keys_under_way() const;
  // The operations under way, as text; "": none.
  [[nodiscard]] std::string under_way() const;

 private:
  // The result of an operation under way, if it has taken effect. Courses are compared by the million: hence no
  // optionals.
  struct taken_effect {
    std::uint64_t found = 0;
    std::uint16_t kind = none;  // none; not found; found; or an outcome
    static constexpr std::uint16_t none = 0;
    [[nodiscard]] static taken_effect with(const answer& a) noexcept;
    [[nodiscard]] explicit operator bool() const noexcept { return kind != none; }
    friend bool operator==(const taken_effect&, const taken_effect&) = default;
  };
  struct operation {
    unsigned thread;
    step what;
    taken_effect coming{};    // the only one that it can have; empty: any
    std::uint64_t began = 0;  // by `clock_`
    std::uint64_t died = 0;   // its host did then; 0: it lives
  };
  // One way in which it may have happened so far.
  struct course {
    key_state state;
    std::array<taken_effect, most_threads> effects{};  // as under_way
    friend bool operator==(const course&, const course&) = default;
  };
  class distinct_courses;
  struct key_history {
    std::vector<course> courses = {course{}};
    std::vector<operation> under_way;
    std::vector<std::pair<operation, answer>> told;  // since the key was settled
    std::vector<key_state> reachable;                // where a crash now may find it; empty: not known yet
    std::vector<key_state> not_acknowledged;         // beside these: where a kill has left it
  };

  struct running_operation {
    bool on = false;
    std::string words;
  };

  // A load under way.
  struct active_load {
    unsigned thread;
    std::vector<indexes::entry> ascending;
  };

  // A scan or an iterator under way. A key without operations has no event of it; the first operation to begin on the
  // key adds one.
  struct active_scan {
    unsigned thread;
    std::uint64_t from;
    action what;  // find; meet
  };

  [[nodiscard]] key_history& of(std::uint64_t key);
  // No operation is under way on the key, and its state is known.
  [[nodiscard]] static bool is_settled(const key_history& k) noexcept {
    return k.under_way.empty() && k.courses.size() == 1;
  }
  void add_operation(key_history& k, unsigned thread, const step& s, const answer* coming = nullptr) const;
  static void let_happen(std::vector<course>& courses, const std::vector<operation>& under_way,
                         std::optional<std::size_t> last);
  static void drop(key_history& k, std::size_t which);
  // Where the operation of `thread` is among those under way.
  [[nodiscard]] static std::optional<std::size_t> place_of(const key_history& k, unsigned thread);
  void begin_scan(const active_scan& scan);
  void set_running(unsigned thread, std::string words);
  void set_ended(unsigned thread);
  void begin(key_history& k, unsigned thread, const step& s, const answer* coming = nullptr);
  static std::string end(key_history& k, std::size_t which, const answer& got);
  // "" or why no crash can leave so much of a load under way.
  std::string judge_load(const active_load& l, std::span<const indexes::entry> entries);
  // Where a crash now may find it.
  [[nodiscard]] static std::vector<key_state> reachable_states(const key_history& k);
  [[nodiscard]] static bool allows(key_history& k, const key_state& found);
  [[nodiscard]] static std::string story(const key_history& k, bool blame);
  [[nodiscard]] static std::string why_not(const key_history& k, std::uint64_t key, const key_state& found);

  std::vector<std::uint64_t> keys_;
  std::vector<key_history> states_;  // as keys_
  std::uint64_t clock_ = 0;
  std::vector<active_scan> scans_;
  std::vector<active_load> loads_;
  std::vector<running_operation> running_;  // by thread
};

}  // namespace pmlab::verify
