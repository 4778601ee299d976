// The loop that is measured: a span of operations on something that answers like an index, no virtual call in it.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/catalogue/pacer.hpp"
#include "bench/catalogue/subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/calls.hpp"
#endif
#include "bench/workload/operation.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pmlab::bench {

template <class T>
concept can_erase = requires(T& target, indexes::key_type key) {
  target.erase(key);
};
template <class T>
concept can_scan = requires(T& target, indexes::key_type key, std::span<indexes::entry> out) {
  target.scan(key, out);
};
template <class T>
concept can_find_batch = requires(T& target, std::span<const indexes::key_type> keys,
                                  std::span<std::optional<indexes::value_type>> values) {
  target.find_batch(keys, values);
};

// The longest batch of find_batch that a user may request.
inline constexpr std::uint32_t batch_limit = 256;

template <class Target>
answer perform(Target& target, const workload::operation& op, std::span<indexes::entry> scanned) {
  using workload::operation_kind;
  answer a;
  switch (op.kind) {
    case operation_kind::read: {
      const std::optional<indexes::value_type> value = target.find(op.key);
      a.found = value.has_value();
      a.value = value.value_or(0);
      break;
    }
    case operation_kind::insert: a.result = target.insert(op.key, op.value); break;
    case operation_kind::update: a.result = target.update(op.key, op.value); break;
    case operation_kind::erase:
      if constexpr (can_erase<Target>) a.result = target.erase(op.key);
      break;
    case operation_kind::scan:
      if constexpr (can_scan<Target>)
        a.entries = static_cast<std::uint32_t>(
            target.scan(op.key, scanned.first(std::min<std::size_t>(op.length, scanned.size()))));
      break;
    case operation_kind::read_modify_write: {
      const std::optional<indexes::value_type> value = target.find(op.key);
      a.found = value.has_value();
      a.value = value.value_or(0);
      a.result = target.update(op.key, op.value);
      break;
    }
  }
  return a;
}

[[nodiscard]] constexpr bool is_positive(const answer& a) noexcept {
  return a.found || a.entries != 0 || a.result == indexes::outcome::inserted || a.result == indexes::outcome::updated ||
         a.result == indexes::outcome::erased;
}

// How many operations from `first` on are reads that one find_batch can take; 0: the first is not one.
[[nodiscard]] inline std::size_t reads_in_a_row(std::span<const workload::operation> operations, std::size_t first,
                                                std::uint32_t limit) noexcept {
  const std::size_t end = std::min<std::size_t>(operations.size(), first + std::min(limit, batch_limit));
  std::size_t next = first;
  while (next < end && operations[next].kind == workload::operation_kind::read) ++next;
  return next - first;
}

// The work of a subject around each operation (or batch).
#if defined(PMLAB_SIMULATED)
// Only the operations in between take virtual time.
struct no_hooks {
  void begin() const noexcept { pmlab_machine_begin_timing(); }
  void end() const noexcept { pmlab_machine_end_timing(); }
};
#else
struct no_hooks {
  void begin() const noexcept {}
  void end() const noexcept {}
};
#endif

// The clock is read around every w.latency_period-th operation, or batch: its time is then that of the whole batch, for
// which its caller waits.
template <class Target, class Hooks>
work_done execute(Target& target, const work& w, const Hooks& hooks) {
  work_done done;
  std::span<indexes::entry> kept = w.kept;
  const media::fast_clock& clock = media::fast_clock::instance();
  std::uint64_t calls = 0;
  const std::uint64_t period_mask = w.latency_period - 1;
  constexpr std::uint64_t picoseconds = 1000;
  const auto run_one = [&](auto&& call) {
    hooks.begin();
    call();
    hooks.end();
  };
  const auto run_maybe_timed = [&](auto&& call) {
#if !defined(PMLAB_SIMULATED)
    if (w.pace != nullptr) {
      const std::uint64_t begins = w.pace->wait(clock);
      run_one(call);
      return w.latencies->record((clock.now_after_loads() - begins) / picoseconds);
    }
#endif
    if (w.latencies == nullptr || (calls++ & period_mask) != 0) return run_one(call);
    const std::uint64_t start = clock.now_after_loads();
    run_one(call);
    w.latencies->record((clock.now_after_loads() - start) / picoseconds);
  };

  std::array<indexes::key_type, batch_limit> keys;
  std::array<std::optional<indexes::value_type>, batch_limit> values;
  for (std::size_t i = 0; i < w.operations.size();) {
    if constexpr (can_find_batch<Target>) {
      if (const std::size_t reads = w.batch > 1 ? reads_in_a_row(w.operations, i, w.batch) : 0; reads > 1) {
        for (std::size_t j = 0; j < reads; ++j) keys[j] = w.operations[i + j].key;
        run_maybe_timed([&] { target.find_batch(std::span(keys).first(reads), std::span(values).first(reads)); });
        for (std::size_t j = 0; j < reads; ++j) {
          done.positive += values[j].has_value() ? 1 : 0;
          if (!w.answers.empty()) {
            w.answers[i + j] = {};
            w.answers[i + j].found = values[j].has_value();
            w.answers[i + j].value = values[j].value_or(0);
          }
        }
        i += reads;
        done.executed = i;
        continue;
      }
    }
    answer a;
    // A copy: the array of operations is not the index's.
    const workload::operation op = w.operations[i];
    run_maybe_timed([&] { a = perform(target, op, w.scanned); });
    if (a.result == indexes::outcome::full) {
      done.full = true;
      break;
    }
    done.positive += is_positive(a) ? 1 : 0;
    if (!w.answers.empty()) {
      w.answers[i] = a;
      if (a.entries != 0) {
        std::copy_n(w.scanned.begin(), a.entries, kept.begin());
        kept = kept.subspan(a.entries);
      }
    }
    done.executed = ++i;
  }
  return done;
}

}  // namespace pmlab::bench
