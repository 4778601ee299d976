// A crash at every event of a run: every image that it may leave is recovered and examined.
//
// A seeded sequence of operations runs on an index in a tracked medium. At each of its crash points, images are made
// (all of them where there are few, otherwise the telling ones and some at random), opened at another address, and
// judged: check() passes; every answered operation is there; the one under way wholly or not at all; every way of
// reading agrees; every allocated block belongs to the index; and the index remains usable.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "support/comparison.hpp"
#include "support/crash_medium.hpp"
#include "support/mutant_medium.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {

struct crash_options {
  std::uint64_t seed = 1;
  key_set keys = key_set::dense;
  std::size_t key_count = 60;
  std::size_t preload = 0;  // keys put in before the first crash point
  std::size_t operations = 100;
  step_mix mix = {};
  // Crash points only where an operation changes the index's shape (nodes, depth, bytes), and at one other operation
  // in `one_operation_in`.
  bool only_around_changes_of_shape = false;
  // A change of the number of nodes alone changes the shape, too.
  bool nodes_are_shape = false;
  std::size_t one_operation_in = 20;
  std::size_t one_point_in = 1;          // one in so many of the crash points of such an operation
  std::size_t images_per_point = 24;     // where there are not fewer in all
  std::size_t work_after_recovery = 24;  // operations on every recovered index
  std::size_t long_work_one_in = 40;     // one in so many of the images: enough operations to change the shape
  std::size_t long_work = 400;
  std::size_t crash_recovery_one_in = 8;  // one in so many of the images: crash points inside `open`, too
  std::size_t images_in_all = 0;          // about so many, spread over the run; 0: no limit
  std::size_t read_one_in =
      0;  // one in so many of the crash points: another thread asks for the key under way; 0: never
  bool only_after_the_mutation = false;  // crash points before the medium's first strike are not examined
};

struct crash_result {
  std::string violation;  // the first one; empty: none
  std::uint64_t crash_points = 0;
  std::uint64_t images = 0;
  std::uint64_t images_of_recoveries = 0;  // among them
  std::uint64_t changes_of_shape = 0;
  std::uint64_t reads = 0;  // that were answered in the middle of a change of their key
  // Chances of a mutant_medium's mutation, as [from, to), in operations that change the shape.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> chances_in_changes_of_shape;
  double seconds = 0;

  [[nodiscard]] std::string describe() const {
    return std::to_string(images) + " images (" + std::to_string(images_of_recoveries) + " of them of recoveries) at " +
           std::to_string(crash_points) + " crash points, " + std::to_string(changes_of_shape) + " changes of shape, " +
           (reads == 0 ? "" : std::to_string(reads) + " reads answered in between, ") +
           std::to_string(static_cast<std::uint64_t>(static_cast<double>(images) / seconds)) + " images/s";
  }
};

// Calls `visit(choice)` for contents of `lines` that a crash may leave: every combination if there are at most
// `limit`, otherwise `limit` of them: all old, all new, one line behind, one line ahead, and mixes at random.
inline void for_each_image(const std::vector<unpersisted_line>& lines, std::size_t limit, random& source,
                           const std::function<void(const std::vector<std::size_t>&)>& visit) {
  std::size_t combinations = 1;
  for (const unpersisted_line& line : lines) {
    combinations *= line.contents;
    if (combinations > limit) break;
  }
  std::vector<std::size_t> choice(lines.size(), 0);
  if (combinations <= limit) {
    for (bool more = true; more;) {
      visit(choice);
      std::size_t digit = 0;
      while (digit < choice.size() && ++choice[digit] == lines[digit].contents) choice[digit++] = 0;
      more = digit < choice.size();
    }
    return;
  }
  const auto newest = [&](std::size_t i) { return lines[i].contents - 1; };
  visit(choice);
  for (std::size_t i = 0; i < lines.size(); ++i) choice[i] = newest(i);
  visit(choice);
  for (std::size_t made = 2; made < limit; ++made) {
    const std::size_t kind = made % 3;
    const std::size_t special = source.below(lines.size());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (kind == 2) choice[i] = source.below(lines[i].contents);
      if (kind == 0) choice[i] = i == special ? source.below(newest(i)) : newest(i);
      if (kind == 1) choice[i] = i == special ? 1 + source.below(newest(i)) : 0;
    }
    visit(choice);
  }
}

namespace detail {

inline crash_medium& machine_of(crash_medium& medium) noexcept { return medium; }
inline crash_medium& machine_of(mutant_medium& medium) noexcept { return medium.inner(); }

inline std::uint64_t strikes_of(const crash_medium& /*medium*/) noexcept { return 0; }
inline std::uint64_t strikes_of(const mutant_medium& medium) noexcept { return medium.strikes(); }
inline std::uint64_t chances_of(const crash_medium& /*medium*/) noexcept { return 0; }
inline std::uint64_t chances_of(const mutant_medium& medium) noexcept { return medium.chances(); }

// The results returned before the crash.
struct promise {
  const contents& answered;
  std::optional<step> under_way;
  std::optional<key_state> read;  // a reader's result for the key under way
};

}  // namespace detail

// One run. `Recorded` is the index on the medium that crashes (crash_medium or mutant_medium), `Recovered` the same
// index on crash_medium.
template <indexes::point_index Recorded, indexes::point_index Recovered, class RecordedMedium>
class crash_scenario {
 public:
  explicit crash_scenario(crash_options options)
      : options_(options),
        source_(options.seed),
        images_(source_.next()),
        keys_(make_keys(options.keys, options.key_count, source_)) {}

  // `medium`: fresh.
  crash_result run(RecordedMedium& medium) {
    const auto start = std::chrono::steady_clock::now();
    medium_ = &medium;
    machine_ = &detail::machine_of(medium);
    const std::vector<step> steps = make_steps();
    find_changes_of_shape(steps);
    steps_ = steps.size();
    if (options_.preload == 0) track();  // creation crashes, too (A1, A6)
    auto index = Recorded::open(medium);
    find_ = [&index](std::uint64_t key) { return index.find(key); };
    machine_->event();
    for (std::size_t i = 0; i < steps.size() && result_.violation.empty(); ++i) {
      operation_ = i;
      if (i == options_.preload && i != 0) track();
      under_way_ = steps[i];
      const std::uint64_t chances = detail::chances_of(medium);
      const answer got = perform(steps[i], index);
      const answer expected = expect(steps[i], model_);
      under_way_.reset();
      waiting_readers_.clear();
      if (got != expected) violated("in the run, " + to_string(steps[i]) + " answered " + to_string(got));
      if (changes_shape_[i])
        result_.chances_in_changes_of_shape.emplace_back(chances + 1, detail::chances_of(medium) + 1);
      machine_->event();
    }
    machine_->stop_tracking();
    if (result_.violation.empty()) {
      if (std::string wrong = compare_all(index, model_); !wrong.empty()) violated("at the end of the run, " + wrong);
      for (const std::string& m : machine_->misuses()) violated("in the run, " + m);
    }
    find_ = nullptr;
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result_;
  }

 private:
  void track() {
    machine_->track([this] { crash_here(); });
  }

  std::vector<step> make_steps() {
    std::vector<step> steps;
    for (std::size_t i = 0; i < options_.preload; ++i)
      steps.push_back({action::insert, keys_[i % keys_.size()], source_.next()});
    for (std::size_t i = 0; i < options_.operations; ++i)
      steps.push_back({random_action(source_, options_.mix), keys_[source_.below(keys_.size())],
                       source_.one_in(4) ? source_.below(3) : source_.next()});
    return steps;
  }

  // A run without crashes, which finds the steps that allocate or release; and so the steps to examine.
  void find_changes_of_shape(const std::vector<step>& steps) {
    changes_shape_.assign(steps.size(), false);
    wanted_.assign(steps.size(), !options_.only_around_changes_of_shape);
    crash_medium medium;
    auto index = Recovered::open(medium);
    const auto shape = [&] {
      return std::pair(medium.used().allocated_bytes, options_.nodes_are_shape ? index.stats().nodes : 0);
    };
    auto bytes = shape();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      perform(steps[i], index);
      const auto now = shape();
      changes_shape_[i] = now != bytes;
      if (now != bytes && i >= options_.preload) ++result_.changes_of_shape;
      wanted_[i] =
          wanted_[i] || now != bytes || (i > 0 && changes_shape_[i - 1]) || source_.one_in(options_.one_operation_in);
      bytes = now;
    }
  }

  void violated(const std::string& what) {
    if (result_.violation.empty())
      result_.violation = "seed " + std::to_string(options_.seed) + ", " + std::string(to_string(options_.keys)) +
                          " keys, operation " + std::to_string(operation_) +
                          (under_way_ ? ", during " + to_string(*under_way_) : "") + ": " + what;
  }

  // As many images as the run's progress allows: the last operations are examined as closely as the first.
  [[nodiscard]] bool ahead_of_budget() const {
    if (options_.images_in_all == 0) return false;
    const std::size_t done = operation_ + 1 - std::min(operation_ + 1, options_.preload);
    return result_.images * (steps_ - options_.preload) > options_.images_in_all * done;
  }

  // Called at every event of the recorded run.
  void crash_here() noexcept {
    if (!wanted_[operation_] || !result_.violation.empty() || ahead_of_budget()) return;
    if (options_.only_after_the_mutation && detail::strikes_of(*medium_) == 0) return;
    if (options_.one_point_in > 1 && !images_.one_in(options_.one_point_in)) return;
    ++result_.crash_points;
    detail::promise promised{model_, under_way_, {}};
    if (options_.read_one_in != 0 && under_way_ && find_ && images_.one_in(options_.read_one_in)) {
      promised.read = read_under_way();
      // A reader that waits for the writer was promised nothing; and it must not find its memory hidden.
      if (!promised.read) return;
    }
    if (!waiting_readers_.empty()) return;
    for_each_image(machine_->unpersisted_lines(), options_.images_per_point, images_,
                   [&](const std::vector<std::size_t>& choice) {
                     if (result_.violation.empty() && (promised.read || is_new(choice)))
                       examine(*machine_, choice, promised);
                   });
  }

  // The result of another thread for the key under way; nothing if it must wait for the operation's end.
  std::optional<key_state> read_under_way() {
    struct shared {
      std::atomic<bool> answered{false};
      key_state found;
    };
    const auto box = std::make_shared<shared>();
    std::jthread reader([box, key = under_way_->key, this] {
      box->found = find_(key);
      box->answered.store(true, std::memory_order_release);
    });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (!box->answered.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    if (!box->answered.load(std::memory_order_acquire)) {
      waiting_readers_.push_back(std::move(reader));
      return std::nullopt;
    }
    ++result_.reads;
    return box->found;
  }

  // The same image again, with the same history, needs no second check.
  bool is_new(const std::vector<std::size_t>& choice) {
    std::uint64_t hash = machine_->persisted_version() * golden_ratio + model_changes();
    for (const std::size_t c : choice) hash = (hash ^ c) * 0x100000001b3U + (hash >> 29);
    return seen_.insert(hash).second;
  }
  [[nodiscard]] std::uint64_t model_changes() const { return operation_ * 2 + (under_way_ ? 1 : 0); }

  void examine(const crash_medium& crashed, const std::vector<std::size_t>& choice, const detail::promise& promised) {
    ++result_.images;
    const bool crash_the_recovery = images_.one_in(options_.crash_recovery_one_in);
    recovered_.restore(crashed, choice);
    crashed.hide();
    if (crash_the_recovery)
      recovered_.track([&] {
        if (!result_.violation.empty()) return;
        for_each_image(recovered_.unpersisted_lines(), 6, images_, [&](const std::vector<std::size_t>& again) {
          if (!result_.violation.empty()) return;
          ++result_.images;
          ++result_.images_of_recoveries;
          recovered_again_.restore(recovered_, again);
          recovered_.hide();
          judge(recovered_again_, promised, "after a crash of the recovery, ");
          recovered_.show();
        });
      });
    judge(recovered_, promised, "");
    crashed.show();
  }

  // Opens the image in `medium` and checks it against `promised`.
  void judge(crash_medium& medium, const detail::promise& promised, const std::string& when) {
    try {
      auto index = Recovered::open(medium);
      medium.stop_tracking();
      std::string wrong = judge_index(index, medium, promised);
      if (!wrong.empty()) violated(when + wrong);
    } catch (const std::exception& e) {
      violated(when + "open or a later operation throws: " + e.what());
    }
    medium.stop_tracking();
  }

  std::string judge_index(Recovered& index, crash_medium& medium, const detail::promise& promised) {
    contents model = promised.answered;
    if (promised.under_way) {
      const step& s = *promised.under_way;
      const key_state found = index.find(s.key);
      if (!wholly_or_not_at_all(s, state_in(model, s.key), found))
        return "the operation under way left " + to_string(answer{{}, found}) + ", neither its old nor its new state";
      if (promised.read && found != *promised.read)
        return "a reader was answered " + to_string(answer{{}, *promised.read}) + " about the key under way, and now " +
               to_string(answer{{}, found}) + " (durable reads)";
      put_state(model, s.key, found);
    }
    if (std::string wrong = compare_all(index, model); !wrong.empty()) return wrong;
    if (std::string wrong = leak(index, medium); !wrong.empty()) return wrong;
    return work_on(index, medium, model);
  }

  static std::string leak(const Recovered& index, const crash_medium& medium) {
    const auto held = index.stats().medium_bytes;
    const auto allocated = medium.used().allocated_bytes;
    if (!medium.misuses().empty()) return medium.misuses().front();
    return held == allocated ? ""
                             : "the index holds " + std::to_string(held) + " bytes and " + std::to_string(allocated) +
                                   " are allocated: a leak, or a block used that is free";
  }

  std::string work_on(Recovered& index, crash_medium& medium, contents& model) {
    const bool much = images_.one_in(options_.long_work_one_in);
    const std::size_t count = much ? options_.long_work : options_.work_after_recovery;
    for (std::size_t i = 0; i < count; ++i) {
      step s;
      s.what = random_action(images_, options_.mix);
      s.key = keys_[images_.below(keys_.size())] + (much ? images_.below(4) : 0);
      s.value = images_.next();
      const answer expected = expect(s, model);
      const answer got = perform(s, index);
      if (got != expected)
        return "after recovery, " + to_string(s) + " answered " + to_string(got) + ", not " + to_string(expected);
    }
    if (std::string wrong = compare_all(index, model); !wrong.empty()) return "after recovery and work, " + wrong;
    if (std::string wrong = leak(index, medium); !wrong.empty()) return "after recovery and work, " + wrong;
    return "";
  }

  crash_options options_;
  random source_;  // numbers of the run
  random images_;  // numbers of everything else: the run does not depend on the examined images
  std::vector<std::uint64_t> keys_;
  crash_result result_;
  contents model_;
  std::optional<step> under_way_;
  std::size_t operation_ = 0;
  std::size_t steps_ = 0;
  std::vector<bool> changes_shape_;  // by operation
  std::vector<bool> wanted_;         // by operation: its crash points are examined
  RecordedMedium* medium_ = nullptr;
  crash_medium* machine_ = nullptr;
  std::function<key_state(std::uint64_t)> find_;  // in the index that is recorded
  std::vector<std::jthread> waiting_readers_;
  crash_medium recovered_;
  crash_medium recovered_again_;
  std::unordered_set<std::uint64_t> seen_;
};

// One run of an index on a fresh crash_medium. Prints how much that was.
template <indexes::point_index Index>
crash_result run_with_crashes(const crash_options& options) {
  crash_medium medium;
  crash_result result = crash_scenario<Index, Index, crash_medium>(options).run(medium);
  std::printf("  seed %llu: %s\n", static_cast<unsigned long long>(options.seed), result.describe().c_str());
  return result;
}

}  // namespace pmlab::tests
