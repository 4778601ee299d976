// Opens the images of a volume, and judges them.
#include "checker/verify/volume_judge.hpp"

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/nearly_full.hpp"

#include <algorithm>
#include <span>

namespace pmlab::verify {
namespace {

// Above the numbers of a run's own writes.
constexpr std::uint32_t first_number_of_work = 1'000'000;

}  // namespace

volume_judge::volume_judge(const volume_kind& kind)
    : kind_(kind), buffer_(std::size_t{kind.shape.blocks} * kind.shape.block_bytes) {}

std::vector<std::uint32_t> volume_judge::numbers_in(volume_target& volume, std::string& wrong, bool together) {
  const volume_shape& shape = kind_.shape;
  const std::uint32_t each = together ? shape.chunk_blocks : 1;
  std::vector<std::uint32_t> numbers(shape.blocks);
  for (std::uint32_t b = 0; b < shape.blocks && wrong.empty(); b += each) {
    const std::uint32_t count = std::min(each, shape.blocks - b);
    const std::span<std::byte> data = buffer_.bytes().first(std::size_t{count} * shape.block_bytes);
    volume.read(b, data);
    for (std::uint32_t i = 0; i < count && wrong.empty(); ++i)
      wrong = read_block(data.subspan(std::size_t{i} * shape.block_bytes, shape.block_bytes), b + i, numbers[b + i]);
  }
  return numbers;
}

std::vector<std::uint32_t> volume_judge::contents_of(crash_image& image) {
  std::string wrong;
  return numbers_in(*kind_.open_image(image), wrong);
}

std::string volume_judge::judge(crash_image& image, const crash_options& options, splitmix64& random) {
  return judge([&] { return kind_.open_image(image); }, &image.memory(), options, random);
}

std::string volume_judge::judge_on_machine(const crash_options& options, splitmix64& random) {
  counts_steps_ = true;  // this process ends with it
  return judge(kind_.open_simulated, nullptr, options, random);
}

std::string volume_judge::judge(const std::function<std::unique_ptr<volume_target>()>& open, const image_medium* medium,
                                const crash_options& options, splitmix64& random) {
  std::unique_ptr<volume_target> volume = open();
  if (std::string wrong = volume->check(); !wrong.empty()) return "check(): " + wrong;
  std::string wrong;
  numbers_ = numbers_in(*volume, wrong, !random.one_in(8));
  if (!wrong.empty()) return wrong;
  if (wrong = history_->judge(numbers_); !wrong.empty()) return wrong;
  const auto judge_space = [&]() -> std::string {
    if (medium == nullptr) return {};
    if (!medium->misuse().empty()) return medium->misuse();
    const auto held = volume->held_bytes();
    if (!held || *held == medium->used().allocated_bytes) return {};
    return "the store holds " + std::to_string(*held) + " bytes of the memory, and " +
           std::to_string(medium->used().allocated_bytes) + " are allocated: leaked, or freed while in use";
  };
  if (wrong = judge_space(); !wrong.empty()) return wrong;
  const bool is_long = random.one_in(options.long_work_one_in);
  const std::size_t operations = is_long ? options.long_work : options.work_after_recovery;
  if (operations == 0) return {};
  wrong = options.nearly_full && random.one_in(2) ? fill_again(*volume, false) : work_on(*volume, operations, random);
  if (wrong.empty()) wrong = judge_space();
  if (wrong.empty() && random.one_in(4)) {
    volume.reset();
    volume = open();
    if (wrong = compare(*volume); !wrong.empty()) wrong = "and opened again, " + wrong;
  }
  return wrong.empty() ? wrong : "after recovery and work, " + wrong;
}

// The image cannot be opened in a process: images always can.
std::string volume_judge::judge_here(const crash_options& /*options*/, splitmix64& /*random*/) { return {}; }

void volume_judge::recover_on_machine(const std::function<void()>& opened) {
  const std::unique_ptr<volume_target> volume = kind_.open_simulated();
  // Some of the recovery may wait until it is needed.
  static_cast<void>(volume->check());
  opened();
}

// The recovered volume must remain usable.
std::string volume_judge::work_on(volume_target& volume, std::size_t operations, splitmix64& random) {
  const volume_shape& shape = kind_.shape;
  unique_ = first_number_of_work;
  for (std::size_t i = 0; i < operations; ++i) {
    if (counts_steps_) simulator::the_machine().allow(simulator::machine::patience);
    const std::uint64_t first = random.below(shape.blocks);
    const auto count =
        static_cast<std::uint32_t>(1 + random.below(std::min<std::uint64_t>(shape.chunk_blocks, shape.blocks - first)));
    if (shape.discards && random.one_in(6)) {
      if (volume.discard({first, count})) std::fill_n(numbers_.begin() + static_cast<std::ptrdiff_t>(first), count, 0U);
    } else if (!random.one_in(3)) {
      if (std::string wrong = write_some(volume, first, count); !wrong.empty()) return wrong;
    } else {
      const std::span<std::byte> data = buffer_.bytes().first(std::size_t{count} * shape.block_bytes);
      volume.read(first, data);
      for (std::uint32_t b = 0; b < count; ++b) {
        std::uint32_t number = 0;
        std::string wrong =
            read_block(data.subspan(std::size_t{b} * shape.block_bytes, shape.block_bytes), first + b, number);
        if (wrong.empty() && number != numbers_[first + b])
          wrong = "a read of block " + std::to_string(first + b) + " returns write " + std::to_string(number) +
                  ", and must return " + std::to_string(numbers_[first + b]);
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return compare(volume);
}

std::string volume_judge::fill_again(volume_target& volume, bool watched) {
  std::string wrong;
  numbers_ = numbers_in(volume, wrong);
  if (!wrong.empty()) return wrong;
  unique_ = first_number_of_work;
  const auto on_machine = [&](auto&& action) {
    if (watched || counts_steps_) simulator::the_machine().allow(simulator::machine::patience);
    if (watched) simulator::the_machine().watch(true);
    const bool done = action();
    if (watched) simulator::the_machine().watch(false);
    return done;
  };
  const auto write = [&](std::size_t b) {
    const std::span<std::byte> data = buffer_.bytes().first(kind_.shape.block_bytes);
    fill_block(data, ++unique_, b);
    const bool done = on_machine([&] { return volume.write(b, data); });
    if (done) numbers_[b] = unique_;
    return done;
  };
  const auto erase = [&](std::size_t b) {
    const bool done = on_machine([&] { return volume.discard({b, 1}); });
    if (done) numbers_[b] = 0;
    return done;
  };
  wrong = half_is_written_again(
      kind_.shape.blocks, [&](std::size_t b) { return numbers_[b] != 0; }, write, erase);
  return wrong.empty() ? compare(volume) : wrong;
}

std::string volume_judge::write_some(volume_target& volume, std::uint64_t first, std::uint32_t count) {
  const volume_shape& shape = kind_.shape;
  const std::uint32_t number = ++unique_;
  const std::span<std::byte> data = buffer_.bytes().first(std::size_t{count} * shape.block_bytes);
  for (std::uint32_t b = 0; b < count; ++b)
    fill_block(data.subspan(std::size_t{b} * shape.block_bytes, shape.block_bytes), number, first + b);
  if (volume.write(first, data)) {
    std::fill_n(numbers_.begin() + static_cast<std::ptrdiff_t>(first), count, number);
    return {};
  }
  if (!shape.fills_up)
    return "a write of " + std::to_string(count) + " blocks at block " + std::to_string(first) +
           " answers full, and there is room";
  // Some parts of a write to several chunks may have been written: take them as they are.
  std::string wrong;
  const std::vector<std::uint32_t> now = numbers_in(volume, wrong);
  for (std::uint32_t b = 0; b < shape.blocks && wrong.empty(); ++b) {
    if (now[b] == numbers_[b]) continue;
    const bool several = first / shape.chunk_blocks != (first + count - 1) / shape.chunk_blocks;
    if (!several || b < first || b >= first + count || now[b] != number)
      wrong = "a write that answers full has changed block " + std::to_string(b);
    numbers_[b] = now[b];
  }
  return wrong;
}

std::string volume_judge::compare(volume_target& volume) {
  if (std::string wrong = volume.check(); !wrong.empty()) return "check(): " + wrong;
  std::string wrong;
  const std::vector<std::uint32_t> now = numbers_in(volume, wrong);
  for (std::uint32_t b = 0; b < now.size() && wrong.empty(); ++b)
    if (now[b] != numbers_[b])
      wrong = "block " + std::to_string(b) + " holds write " + std::to_string(now[b]) + ", and must hold " +
              std::to_string(numbers_[b]);
  return wrong;
}

}  // namespace pmlab::verify
