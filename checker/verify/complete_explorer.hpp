// Every state that a crash of a one-threaded run may leave, opened and judged: not a sample.
//
// The crash points between two answers, and the second answer, are joined: their states are one set
// (joined_states.hpp), recorded at the points after which states disappear: before something becomes durable, and at
// the answer. Stores alone only add states. Recovery, the check and some further operations run on the simulated
// machine, which sees their reads; of states that differ in nothing that was read, one is opened (course_search). Its
// verdict holds for each of the points that have such a state, by the history of that point.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/complete_counts.hpp"
#include "checker/verify/complete_options.hpp"
#include "checker/verify/index_judge.hpp"
#include "checker/verify/joined_states.hpp"
#include "checker/verify/seen_images.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace pmlab::verify {

class complete_explorer final : public simulator::persistence_observer, private simulator::access_watcher {
 public:
  // On a violation `violated(text)` is called; it must not return.
  complete_explorer(simulator::persistent_memory& memory, index_judge& judge, complete_counts& counts,
                    std::function<void(const std::string&)> violated);
  ~complete_explorer() override;

  // A run of so many operations begins, on the judge's history. `options.complete` is not null.
  void begin(std::uint64_t seed, const crash_options& options, std::size_t operations);
  // An operation has returned.
  void promised();
  // The run is over: the last group is searched.
  void finish();

  // Ends the process without a verdict if a course is on that has left its reads: a fault may be of bytes that no state
  // has.
  static void end_if_diverged();

  void after_store(const simulator::unpersisted_line& line) override;
  void after_fence() override;
  void before_durable() override;

 private:
  static constexpr std::size_t any_history = ~std::size_t{0};
  using blocks = std::shared_ptr<const simulator::block_table::extents>;
  struct recorded_line {
    simulator::unpersisted_line log;
    line_content durable;
  };
  // A point whose states are recorded.
  struct recorded_point {
    std::size_t history;  // in histories_
    blocks allocated;
    std::vector<recorded_line> lines;  // that were not durable
    const void* last_caller;
  };

  // Something happened, or is about to: the group that is open goes on, or is searched and another one begins.
  void begin_event();
  void count_point();
  void open_joint();
  void record();
  void write_old_lines_back();
  void forget_waits_of_durable_lines();
  // The history of now becomes the last of histories_.
  void remember_history();
  [[nodiscard]] line_content durable_content(std::uint32_t line) const;

  void search();
  void search_with(const blocks& allocated, const point_set& points);
  [[nodiscard]] std::string accept(std::span<const indexes::entry> entries);
  void open_every_state();
  // Opens and judges the image in bytes_.
  void open(const simulator::block_table::extents& allocated, const index_judge::acceptance& accepts);
  [[nodiscard]] recorded_point point_of_now() const;
  [[noreturn]] void violation(const std::string& what);
  [[nodiscard]] std::string circumstances();
  static void on_machine_violation(const std::string& what);

  void before_read(std::uintptr_t address, std::size_t bytes) override;
  void before_write(std::uintptr_t address, std::size_t bytes) override;

  simulator::persistent_memory& memory_;
  index_judge& judge_;
  complete_counts& counts_;
  std::function<void(const std::string&)> violated_;
  crash_options options_;
  complete_options how_;
  std::size_t first_operation_ = 0;  // nothing is searched before so many have returned
  std::uint64_t seed_ = 0;
  simulator::persistent_memory image_;
  std::vector<std::byte> base_;                  // durable when the group began
  std::vector<std::byte> bytes_;                 // bytes of the image that is opened
  std::vector<std::uint32_t> durable_lines_;     // changed since the point before
  std::vector<std::uint32_t> were_unpersisted_;  // at the point before
  // How many operations had returned when the line was seen to wait, of lines that have not become durable since.
  std::unordered_map<std::uint32_t, std::size_t> waits_since_;
  bool writes_back_ = false;

  bool is_open_ = false;
  bool is_complete_ = false;  // another event begins another group
  bool is_mine_ = false;
  bool has_changed_ = false;    // since the point that was recorded last
  std::size_t joint_ = 0;       // the number of the group
  std::size_t operations_ = 0;  // that have returned
  std::uint64_t points_of_joint_ = 0;
  std::size_t records_of_joint_ = 0;
  joined_states states_;
  std::vector<recorded_point> points_;
  std::vector<std::unique_ptr<history_model>> histories_;
  std::uint64_t version_ = 0;  // version of the last of them

  course_search* course_ = nullptr;           // that is on; null: every byte of the image is decided
  std::vector<std::uint32_t> place_of_line_;  // place of each line of the image: 0 none; or that in states_, plus 1
  std::uint64_t values_ = 0;                  // a hash of all that was read
  std::vector<std::uint32_t> choice_;
  std::size_t wrong_history_ = any_history;  // that the state contradicts
  seen_images outcomes_;
  seen_images images_;
};

}  // namespace pmlab::verify
