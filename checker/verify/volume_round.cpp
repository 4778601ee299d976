// One run of a volume on the simulated machine.
#include "checker/verify/volume_round.hpp"

#include <pmlab/base/random.hpp>

#include <algorithm>
#include <utility>

namespace pmlab::verify {

volume_runner::volume_runner(const subject& kind, round_counts& counts,
                             std::function<void(const std::string&)> violated)
    : round_runner(kind, counts, std::move(violated)), shape_(kind.volume->shape) {}

// ---- the plan ----

std::string volume_runner::plan() {
  splitmix64 source(options_->seed * 977 + 5);
  std::uint32_t number = 0;
  const bool hot = source.one_in(2);
  splitmix64 spans(options_->seed * 613 + 9);  // the lengths of reads: the other steps do not depend on them
  const auto a_step = [&](std::size_t /*thread*/) {
    volume_step s;
    std::uint64_t first = source.below(shape_.blocks);
    if (hot && !source.one_in(3)) first %= shape_.chunk_blocks;
    const std::uint64_t in_chunk = shape_.chunk_blocks - first % shape_.chunk_blocks;
    // Some go on in the next chunk.
    const std::uint64_t most = source.one_in(8) ? 2 * std::uint64_t{shape_.chunk_blocks} : in_chunk;
    const std::uint64_t count = 1 + source.below(std::min(most, shape_.blocks - first));
    s.ranges = {{first, static_cast<std::uint32_t>(count)}};
    const std::uint64_t kind = source.below(10);
    s.what = kind < 6                       ? volume_step::action::write
             : kind == 6 && shape_.discards ? volume_step::action::discard
                                            : volume_step::action::read;
    if (s.what == volume_step::action::read && spans.one_in(3)) {
      // To the end of the chunk and on.
      const std::uint64_t more = in_chunk + 1 + spans.below(shape_.chunk_blocks);
      s.ranges.front().count = static_cast<std::uint32_t>(std::min(more, shape_.blocks - first));
    }
    if (s.what != volume_step::action::write) return s;
    s.number = ++number;
    if (!shape_.groups || !source.one_in(5)) return s;
    // Some blocks of the chunk, in ascending order.
    s.ranges.clear();
    const std::uint64_t start = first - first % shape_.chunk_blocks;
    for (std::uint64_t b = start; b < std::min<std::uint64_t>(start + shape_.chunk_blocks, shape_.blocks); ++b)
      if (source.one_in(2)) s.ranges.push_back({b, 1});
    if (s.ranges.empty()) s.ranges = {{first, 1}};
    return s;
  };
  phases_ = make_phases(*options_, a_step);
  return to_string(phases_);
}

// ---- operations ----

void volume_runner::fill(const volume_step& s, std::span<std::byte> data) const {
  std::size_t at = 0;
  for (const block_range& r : s.ranges)
    for (std::uint64_t b = r.first; b < r.first + r.count; ++b, at += shape_.block_bytes)
      fill_block(data.subspan(at, shape_.block_bytes), s.number, b);
}

std::string volume_runner::read_numbers(const volume_step& s, std::span<const std::byte> data,
                                        std::vector<std::uint32_t>& numbers) const {
  const block_range& r = s.ranges.front();
  numbers.resize(r.count);
  for (std::uint32_t b = 0; b < r.count; ++b)
    if (std::string wrong =
            read_block(data.subspan(std::size_t{b} * shape_.block_bytes, shape_.block_bytes), r.first + b, numbers[b]);
        !wrong.empty())
      return to_string(s) + ": " + wrong;
  return {};
}

// "" or the violation in its result.
std::string volume_runner::perform(unsigned thread, const volume_step& s, buffer& whole) {
  simulator::machine& machine = simulator::the_machine();
  std::string wrong;
  const std::span<std::byte> data = whole.bytes().first(std::size_t{s.blocks()} * shape_.block_bytes);
  machine.quietly([&] {
    history_->called(thread, s);
    if (s.what == volume_step::action::write) fill(s, data);
  });
  if (s.what == volume_step::action::read) {
    target_->read(s.ranges.front().first, data);
    machine.quietly([&] {
      std::vector<std::uint32_t> numbers;
      wrong = read_numbers(s, data, numbers);
      if (wrong.empty()) wrong = history_->returned(thread, s, numbers);
    });
    return wrong;
  }
  const bool done = s.what == volume_step::action::discard ? target_->discard(s.ranges.front())
                    : s.ranges.size() > 1                  ? target_->write_group(s.ranges, data)
                                                           : target_->write(s.ranges.front().first, data);
  machine.quietly([&] {
    wrong = history_->returned(thread, s, {}, !done);
    if (wrong.empty() && !done && !shape_.fills_up && memory_.limit().refusals() == 0)
      wrong = to_string(s) + " answers full, and no medium refused it any space";
  });
  return wrong;
}

// ---- the round ----

std::unique_ptr<volume_model> volume_runner::make_history() const {
  auto history = std::make_unique<volume_model>(shape_);
  if (!known_.empty()) history->there_before(known_);
  return history;
}

void volume_runner::begin_phase() {
  if (!options_->full) return;
  simulator::the_machine().quietly([&] {
    splitmix64 source(options_->seed * 31 + 11);
    memory_.limit(simulator::space_limit(
        {.spare = source.below(20), .refused = 1 + source.below(6), .one_in = 1 + source.below(2)}));
  });
}

void volume_runner::check_live() {
  if (std::string wrong = memory_.audit(); !wrong.empty()) violated_(wrong);
  at_end(target_->check(), "check(): ");
  std::string wrong;
  const std::vector<std::uint32_t> numbers = judge_.numbers_in(*target_, wrong);
  at_end(wrong.empty() ? history_->judge(numbers) : wrong);
  check_held(target_->held_bytes(), "the store", " bytes of the memory");
}

}  // namespace pmlab::verify
