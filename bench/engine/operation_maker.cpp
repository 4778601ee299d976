// Makes the operations of a round, outside the timing.
#include "bench/engine/operation_maker.hpp"
#include <pmlab/base/hash.hpp>
#include "bench/workload/generator.hpp"
#include "bench/workload/keys.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace pmlab::bench {
namespace {

using workload::operation;
using workload::operation_kind;

// A seed of its own for every place of a run.
std::uint64_t seed_at(std::uint64_t seed, const round_place& place) noexcept {
  for (const std::uint64_t part : {place.phase, place.repeat, place.round})
    seed = mix_bits(seed + golden_ratio * (part + 1));
  return seed;
}

operation insert_of(std::uint64_t key) {
  return {.key = key, .value = workload::value_of(key, 0), .length = 0, .kind = operation_kind::insert};
}

// A permutation of [0, size): neighbours land far apart, so that keys are not erased in the order of their insertion.
class scattered_order {
 public:
  explicit scattered_order(std::uint64_t size) : size_(size) {
    constexpr double golden_ratio = 0.6180339887498949;
    stride_ = static_cast<std::uint64_t>(static_cast<double>(size) * golden_ratio) | 1;
    while (std::gcd(stride_, size_) > 1) stride_ += 2;
  }
  std::uint64_t operator[](std::uint64_t position) const noexcept {
    return static_cast<std::uint64_t>(static_cast<wide>(position) * stride_ % size_);
  }

 private:
  __extension__ using wide = unsigned __int128;

  std::uint64_t size_;
  std::uint64_t stride_;
};

}  // namespace

std::uint64_t operation_maker::operations_of(const phase& p, const key_space& keys) const {
  switch (p.kind) {
    case phase_kind::load: return options_.trace ? options_.trace->load.size() : options_.records;
    case phase_kind::erase: return keys.added.size();
    case phase_kind::trace: return options_.trace->run.size();
    case phase_kind::reopen: return 0;
    // Not for ever: the pool was made for so many.
    case phase_kind::insert: return options_.seconds > 0 ? options_.records : options_.operations;
    default: return options_.seconds > 0 ? std::numeric_limits<std::uint64_t>::max() : options_.operations;
  }
}

std::vector<operation> operation_maker::make(const phase& p, const key_space& keys, const round_place& place,
                                             unsigned thread) const {
  if (p.kind == phase_kind::read || p.kind == phase_kind::update || p.kind == phase_kind::scan ||
      p.kind == phase_kind::mix) {
    return generated(p, keys, place, thread);
  }
  const std::uint64_t count = workload::share_of(place.count, thread, threads_);
  std::vector<operation> made;
  made.reserve(count);
  const scattered_order order(keys.added.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t position = place.done + thread + i * threads_;
    switch (p.kind) {
      case phase_kind::load:
        made.push_back(options_.trace ? options_.trace->load[position]
                                      : insert_of(workload::key_of(keys.first + position)));
        break;
      case phase_kind::insert:
        made.push_back(
            insert_of(workload::key_of(key_space::first_fresh + keys.first + keys.fresh + thread + i * threads_)));
        break;
      case phase_kind::absent: {
        const std::uint64_t repeat = place.repeat << 40;
        made.push_back({.key = workload::key_of(key_space::first_absent + keys.first + repeat + position)});
        break;
      }
      case phase_kind::erase:
        made.push_back({.key = keys.added[order[position]], .kind = operation_kind::erase});
        break;
      case phase_kind::trace: made.push_back(options_.trace->run[position]); break;
      default: break;
    }
  }
  return made;
}

std::vector<operation> operation_maker::generated(const phase& p, const key_space& keys, const round_place& place,
                                                  unsigned thread) const {
  workload::generator_options wanted{};
  wanted.operations_mix = p.shares;
  wanted.keys = options_.keys.value_or(p.shares.usual_keys);
  wanted.first = keys.first;
  wanted.records = keys.records;
  wanted.operations = place.count;
  wanted.seed = seed_at(options_.seed, place);
  wanted.thread = thread;
  wanted.threads = threads_;
  wanted.max_scan_length = options_.scan_length;
  std::vector<operation> made = workload::generate(wanted);
  if (p.kind == phase_kind::scan)
    for (operation& op : made) op.length = options_.scan_length;
  if (wanted.keys.kind == workload::distribution_kind::sequential) continue_sequence(made, keys, place);
  return made;
}

// Every round's sequence begins at the same record: moves it to where the last round's ended.
void operation_maker::continue_sequence(std::vector<operation>& made, const key_space& keys,
                                        const round_place& place) const {
  for (operation& op : made) {
    const std::uint64_t index = workload::index_of(op.key) - keys.first;
    if (index >= keys.records) continue;
    op.key = workload::key_of(keys.first + (index + place.done / threads_) % keys.records);
    op.value = workload::value_of(op.key, workload::sequence_of(op.value));
  }
}

void operation_maker::advance(const phase& p, key_space& keys, const std::vector<std::vector<operation>>& made) const {
  if (p.kind == phase_kind::insert)
    for (const auto& mine : made) keys.fresh += mine.size();
  if (p.kind != phase_kind::mix) return;
  std::uint64_t most = 0;
  for (const auto& mine : made)
    most = std::max<std::uint64_t>(
        most, static_cast<std::uint64_t>(std::count_if(
                  mine.begin(), mine.end(), [](const operation& op) { return op.kind == operation_kind::insert; })));
  keys.records += most * threads_;
}

}  // namespace pmlab::bench
