// One thread of a case.
#include "microbench/memory/lane.hpp"
#include <pmlab/media/clock.hpp>
#include "microbench/memory/places.hpp"

#include <algorithm>

namespace pmlab::microbench {
namespace {

using media::fast_clock;

constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t line_bytes = 64;

std::uint64_t picoseconds(double seconds) { return static_cast<std::uint64_t>(seconds * 1e12); }

std::uint64_t now() { return fast_clock::instance().now_after_loads(); }

std::uint64_t distance_of(const bench_case& c) {
  if (c.pattern == pattern_kind::strided) return c.stride_bytes;
  // Places keep the alignment that accesses are to have; the offset is added to it.
  const std::uint64_t room = c.access_bytes + c.offset_bytes;
  const std::uint64_t step = std::min<std::uint64_t>(c.access_bytes, line_bytes);
  return std::max(c.align_bytes, (room + step - 1) / step * step);
}

}  // namespace

kernel_choice choice_for(const bench_case& c) {
  kernel_choice k{c.load, c.store, c.access_bytes, c.dependent, c.operation == operation_kind::copy};
  // Non-temporal vector stores must be aligned; movnti need not.
  if (c.stores() && c.store == store_kind::ntstore && c.offset_bytes != 0) k.load = load_kind::scalar;
  return k;
}

lane::lane(const bench_case& c, const method& m, target& memory, unsigned number, bool loads, std::uint64_t seed)
    : case_(c), method_(m), memory_(memory), number_(number), loads_(loads), seed_(seed) {
  region_ = memory.start();
  region_bytes_ = c.working_set_bytes;
  const std::uint64_t distance = distance_of(c);
  if (c.private_sets) {
    // Parts begin at places of the whole, and at lines.
    region_bytes_ = c.working_set_bytes / c.threads / distance * distance;
    region_ += number * region_bytes_;
  }
  places_ = region_bytes_ / distance;
  if (c.pattern == pattern_kind::hot) places_ = std::min(places_, c.hot_lines);
  way_ = {.base = region_ + c.offset_bytes, .distance = distance, .places = places_, .bytes = c.access_bytes};
  way_.fence_bytes = c.fence_bytes == fence_each_access ? c.access_bytes : c.fence_bytes;
  fenced_ = c.fence_bytes != fence_never || c.operation == operation_kind::read_after_persist;
  batch_ = std::clamp<std::uint64_t>(m.batch_bytes / c.access_bytes, 1, 1024);
}

bool lane::timed_one_by_one() const noexcept {
  return case_.measure == measure_kind::latency && case_.pattern != pattern_kind::chase;
}

bool lane::ordered_by_table() const noexcept {
  switch (case_.pattern) {
    case pattern_kind::sequential:
    case pattern_kind::strided:
    case pattern_kind::chase: return false;
    default: return true;
  }
}

void lane::prepare(std::uint64_t repetition) {
  if (ordered_by_table()) {
    const bool in_parts = places_ > method_.most_entries;
    if (repetition == 0) table_.resize(std::min(places_, method_.most_entries));
    // A random selection needs more entries than places, or the same few are repeated.
    if (repetition == 0 && (case_.pattern == pattern_kind::zipfian || case_.pattern == pattern_kind::hot))
      table_.resize(method_.most_entries);
    // Parts of the threads follow each other, then those of the next repetition.
    if (repetition == 0 || in_parts) {
      fill_places(table_, places_, case_, case_.private_sets || in_parts ? seed_ : seed_ + number_,
                  in_parts ? repetition * case_.threads + number_ : number_);
      way_.at = 0;
    }
    way_.table = table_.data();
    way_.places = table_.size();
  } else if (case_.pattern == pattern_kind::chase) {
    if (repetition == 0) {
      // One chain for all who share it.
      if (case_.private_sets || number_ == 0)
        link_chase(region_ + case_.offset_bytes, places_, way_.distance, case_.access_bytes, seed_ + number_);
      // Anywhere on a random cycle is as far from anywhere else as chance has it.
      if (!case_.private_sets) way_.base += places_ / case_.threads * number_ * way_.distance;
    }
  } else if (repetition == 0 && !case_.private_sets && case_.threads > 1) {
    // Each begins at another place: side by side they would read lines that a neighbour has just fetched.
    way_.at = places_ / case_.threads * number_;
  }
  if (repetition != 0) return;
  if (timed_one_by_one()) result_.samples.reserve(method_.samples);
  kernels_ = memory_.make_kernels(choice_for(case_));
  touch_pages();
}

void lane::touch_pages() {
  // Strides are about which page lies on which DIMM.
  const std::uint64_t most_touched = std::uint64_t{case_.pattern == pattern_kind::strided ? 512U : 64U} << 20;
  if (number_ != 0 || case_.working_set_bytes > most_touched) return;
  kernels_->enter();
  std::byte* const start = memory_.start();
  for (std::uint64_t at = 0; at < case_.working_set_bytes; at += page_bytes) {
    kernels_->touch(start + at);
    kernels_->drop(start + at, 1);
  }
  ended_ = now();
  kernels_->leave();
}

void lane::access(std::uint64_t count) {
  if (case_.pattern == pattern_kind::chase)
    kernels_->chase(way_, count);
  else if (loads_)
    kernels_->load(way_, count);
  else
    kernels_->store(way_, count);
  result_.issued += count;
}

void lane::measure(std::uint64_t start, std::atomic<unsigned>& finished, unsigned lanes) {
  result_.accesses = result_.time = result_.issued = 0;
  result_.samples.clear();
  kernels_->enter();
  if (timed_one_by_one()) find_timing_cost();
  if (const std::uint64_t at = now(); at < start) kernels_->idle((start - at) / 1000);
  const bool cold_chase = case_.pattern == pattern_kind::chase && case_.cache == cache_state::cold;
  if (timed_one_by_one()) {
    measure_one_by_one(picoseconds(method_.warm_up_seconds));
    result_.samples.clear();
    measure_one_by_one(picoseconds(method_.seconds));
  } else if (cold_chase) {
    measure_cold_chase(picoseconds(method_.warm_up_seconds));
    result_.accesses = result_.time = 0;
    measure_cold_chase(picoseconds(method_.seconds));
  } else {
    run_for(picoseconds(method_.warm_up_seconds));
    measure_in_a_row(picoseconds(method_.seconds));
  }
  finished.fetch_add(1, std::memory_order_acq_rel);
  while (finished.load(std::memory_order_acquire) < lanes) {
    if (timed_one_by_one())
      static_cast<void>(time_one(way_.next()));
    else
      access(batch_);
  }
  kernels_->finish();
  ended_ = now();
  kernels_->leave();
}

void lane::run_for(std::uint64_t picoseconds) {
  const std::uint64_t end = now() + picoseconds;
  do access(batch_);
  while (now() < end);
}

void lane::measure_in_a_row(std::uint64_t picoseconds) {
  const std::uint64_t issued = result_.issued;
  const std::uint64_t start = now();
  run_for(picoseconds);
  result_.time = now() - start;
  result_.accesses = result_.issued - issued;
}

void lane::drop_places() {
  kernels_->drop(region_, region_bytes_);
  chased_ = 0;
}

// Pass after pass; before each, the caches lose all that the last one brought.
void lane::measure_cold_chase(std::uint64_t picoseconds) {
  std::uint64_t taken = 0;
  while (taken < picoseconds) {
    if (chased_ == 0 || chased_ == places_) drop_places();
    const std::uint64_t count = std::min(batch_, places_ - chased_);
    kernels_->begin();
    const std::uint64_t start = now();
    access(count);
    kernels_->end();
    taken += now() - start;
    chased_ += count;
    result_.accesses += count;
  }
  result_.time += taken;
}

std::uint64_t lane::time_one(std::byte* place) {
  ++result_.issued;
  if (case_.cache == cache_state::cold) kernels_->drop(place, case_.access_bytes);
  if (case_.cache == cache_state::warm) kernels_->load_one(place);
  if (case_.idle_ns != 0) kernels_->idle(case_.idle_ns);
  kernels_->begin();
  std::uint64_t start = now();
  if (case_.operation == operation_kind::read_after_persist) {
    for (std::size_t i = 0; i < case_.steps.size(); ++i) {
      if (case_.last_step_only && i + 1 == case_.steps.size()) {
        kernels_->begin();
        start = now();
      }
      case_.steps[i] == step_kind::load ? kernels_->load_one(place) : kernels_->store_one(place, true);
    }
  } else if (loads_) {
    kernels_->load_one(place);
  } else {
    kernels_->store_one(place, fenced_);
  }
  kernels_->end();
  return now() - start;
}

// The same with accesses that do nothing: the median of many.
void lane::find_timing_cost() {
  constexpr std::size_t tries = 501;
  std::vector<std::uint64_t> costs(tries);
  std::byte* const place = way_.base;
  for (std::uint64_t& cost : costs) {
    kernels_->begin();
    const std::uint64_t start = now();
    if (case_.operation == operation_kind::read_after_persist) {
      const std::size_t first = case_.last_step_only ? case_.steps.size() - 1 : 0;
      for (std::size_t i = first; i < case_.steps.size(); ++i)
        case_.steps[i] == step_kind::load ? kernels_->load_none(place) : kernels_->store_none(place);
    } else {
      loads_ ? kernels_->load_none(place) : kernels_->store_none(place);
    }
    kernels_->end();
    cost = now() - start;
  }
  std::nth_element(costs.begin(), costs.begin() + tries / 2, costs.end());
  result_.timing_cost = costs[tries / 2];
}

void lane::measure_one_by_one(std::uint64_t picoseconds) {
  const std::uint64_t from = now();
  const std::uint64_t end = from + picoseconds;
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  while (now() < end && count < method_.samples) {
    const std::uint64_t taken = time_one(way_.next());
    const std::uint64_t own = taken > result_.timing_cost ? taken - result_.timing_cost : 0;
    result_.samples.push_back(own);
    sum += own;
    ++count;
  }
  result_.accesses = count;
  result_.time = sum;
}

}  // namespace pmlab::microbench
