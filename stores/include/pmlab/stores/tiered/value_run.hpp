// Reads the values of a cursor: neighbours in the order of keys are mostly neighbours on the drive, so a read brings
// those behind it, too.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/read_cache.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pmlab::stores::detail::tiered {

// Throws pmlab::error: this is not the value that `v` names.
inline void check_value(std::string_view value, const found_version& v) {
  if (check_of(value) == v.value_check) return;
  throw error(
      "the value of sequence " + std::to_string(v.sequence) + " in " + in_words(v.place.segment) + " is damaged",
      "check the drive; other keys are not affected");
}

// The whole blocks around a value, in bytes of its segment.
struct block_range {
  std::uint32_t begin;
  std::uint64_t end;
};
[[nodiscard]] inline block_range blocks_around(const found_version& v, std::uint32_t block_bytes) noexcept {
  return {v.place.offset - v.place.offset % block_bytes,
          round_up(std::uint64_t{v.place.offset} + v.value_bytes, block_bytes)};
}
// Values of more than this are not read together: a request that is longer is hardly cheaper than two.
inline constexpr std::uint32_t most_bytes_read_together = std::uint32_t{128} << 10;

// Reads the value that `v` names, or finds it in the cache. Throws pmlab::error if it is not the one that was written.
template <blocks::device Device>
std::string read_value(const set_context<Device>& context, const found_version& v) {
  if (v.node != nullptr) return std::string(v.node->value());
  if (v.value) return *v.value;
  const cached_name name{0, v.sequence};
  if (const auto found = context.cache.template find<std::string>(name)) return *found;
  const block_range around = blocks_around(v, context.where.block_bytes);
  blocks::buffer bytes(around.end - around.begin);
  if (v.value_bytes > 0)
    context.readers.with(
        [&](auto& drives) { drives.read(v.place.segment, around.begin, bytes.bytes(), blocks::stream::values); });
  std::string value(reinterpret_cast<const char*>(bytes.data()) + v.place.offset - around.begin, v.value_bytes);
  check_value(value, v);
  if (context.cache.most_bytes() > 0)
    context.cache.add(name, std::make_shared<const std::string>(value), value.size() + sizeof value);
  return value;
}

// The blocks that were read last, of one segment. They are not put into the cache: a walk over everything is no reason
// to keep anything. Thread safety: none.
template <blocks::device Device>
class value_run {
 public:
  explicit value_run(const set_context<Device>& context) : context_(context) {}

  // Stores the value that `v` names in `value`. Throws pmlab::error: the drive fails, or this is not the value that was
  // written.
  void read(const found_version& v, std::string& value) {
    if (v.has_value() && v.node == nullptr && !v.value) {
      // In a log, whose values lie in the order of puts, hardly any value follows the one of the key before it.
      const bool is_near =
          v.place.segment == segment_ && v.place.offset >= next_ && v.place.offset - next_ < context_.where.block_bytes;
      segment_ = v.place.segment;
      next_ = v.place.offset + v.value_bytes;
      if (!is_near) ahead_ = 0;
      const bool is_here = has(v);
      if (!is_here)
        if (const auto found = context_.cache.template find<std::string>({0, v.sequence})) {
          value = *found;
          return;
        }
      if (is_here || bring(v)) {
        const std::size_t at = v.place.offset - begin_;
        value.assign(reinterpret_cast<const char*>(bytes_.data()) + at, v.value_bytes);
        if (check_of(value) == v.value_check) return;
        end_ = begin_;  // damaged, or written since: the drive decides
      }
    }
    value = read_value(context_, v);
  }

 private:
  // Size of the run behind a value that was read alone. Each is twice the one before.
  static constexpr std::uint32_t least_bytes = std::uint32_t{16} << 10;

  [[nodiscard]] bool has(const found_version& v) const noexcept {
    return v.place.segment == run_segment_ && v.place.offset >= begin_ && v.place.offset + v.value_bytes <= end_;
  }
  // Reads the blocks of `v` and those behind them. False: the drive fails; one of the others may be the reason.
  [[nodiscard]] bool bring(const found_version& v) {
    const std::uint32_t block = context_.where.block_bytes;
    const auto [begin, end] = blocks_around(v, block);
    const std::uint64_t segment_bytes = context_.where.segment_bytes;
    if (end > segment_bytes) return false;
    const auto bytes =
        static_cast<std::uint32_t>(std::min(std::max(end - begin, round_up(ahead_, block)), segment_bytes - begin));
    end_ = begin_;
    if (bytes_.size() < bytes) bytes_ = blocks::buffer(bytes);
    try {
      context_.readers.with([&](auto& drives) {
        drives.read(v.place.segment, begin, bytes_.bytes().first(bytes), blocks::stream::values);
      });
    } catch (const error&) {
      return false;
    }
    run_segment_ = v.place.segment;
    begin_ = begin;
    end_ = begin + bytes;
    ahead_ = std::clamp(2 * ahead_, least_bytes, most_bytes_read_together);
    return true;
  }

  set_context<Device> context_;
  blocks::buffer bytes_;
  std::uint32_t run_segment_ = 0;
  std::uint32_t begin_ = 0;  // place of the run in its segment; empty: there is none
  std::uint32_t end_ = 0;
  std::uint32_t segment_ = 0;  // place behind the value that was read last
  std::uint32_t next_ = 0;
  std::uint32_t ahead_ = 0;  // bytes of the next run, if it has no larger value
};

}  // namespace pmlab::stores::detail::tiered
