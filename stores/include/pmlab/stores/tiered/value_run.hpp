// Reads the values of a cursor: neighbours in the order of keys are mostly neighbours on the drive, so a read brings
// those behind it, too; and those that are not are read together.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/read_cache.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/value_reader.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::stores::detail::tiered {

// Throws pmlab::error: this is not the value that `v` names.
inline void check_value(std::string_view value, const found_version& v) {
  if (is_check_of(v.value_check, value)) return;
  throw error(
      "the value of sequence " + std::to_string(v.sequence) + " in " + in_words(v.place.segment) + " is damaged",
      "check the drive; other keys are not affected");
}

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

// A version whose value is needed soon.
struct version_ahead : wanted_version {
  std::shared_ptr<const std::string> cached{};  // its value, if the cache had it

  // Holds no value any more; the memory of its key stays.
  void release() noexcept {
    version.value.reset();
    blocks.reset();
    cached.reset();
  }
};

// Reads the values of versions that come in the order of their keys. It keeps the blocks that were read last, of one
// segment. Values enter the cache while it has room: a walk over everything is no reason that anything leaves. Thread
// safety: none.
template <blocks::device Device>
class value_run {
 public:
  // The versions that `prepare` takes at once. Their values may need so many bytes, and one value more.
  static constexpr std::size_t most_ahead = value_reader<Device>::depth;
  static constexpr std::uint64_t most_bytes_ahead = std::uint64_t{512} << 10;

  explicit value_run(const set_context<Device>& context) : context_(context) {}
  // The bytes that are held for `v`, at most, once it was prepared: whole blocks, however small the value is.
  [[nodiscard]] std::uint64_t bytes_for(const found_version& v) const noexcept {
    if (!is_on_drive(v)) return v.value ? v.value->size() : 0;
    const block_range around = blocks_around(v, context_.where.block_bytes);
    return around.end - around.begin;
  }

  // `next` are the versions that `read` gets next. Reads their values together, unless all follow one another on the
  // drive: then `read` does, with those behind them. In a log, whose values lie in the order of puts, hardly any
  // follows the one of the key before it; in a leaf that was merged, a few do. REQUIRES: at most most_ahead; none
  // holds anything.
  void prepare(std::span<version_ahead> next) {
    std::array<wanted_version*, most_ahead> wanted{};
    std::size_t count = 0;
    bool are_one_run = true;
    together_.end = 0;
    try {
      // Behind the last value that is not in the cache: only the others are neighbours of anything that is read.
      place_behind before = before_;
      // The run that was read last: whether the values go on behind it, and whether it is still there then.
      bool goes_on = before_.segment == run_segment_ && before_.offset > begin_ && before_.offset <= end_;
      bool stays = true;
      for (version_ahead& one : next) {
        const found_version& v = one.version;
        if (!is_on_drive(v)) continue;
        const bool is_here = stays && has(v);
        if (!is_here) {
          one.cached = context_.cache.template find<std::string>({0, v.sequence});
          if (one.cached != nullptr) continue;
        }
        const bool follows = is_near(v, before);
        goes_on = goes_on && follows;
        before = behind(v);
        if (is_here) {
          are_one_run = are_one_run && count == 0;
        } else if (goes_on) {
          stays = false;
        } else {
          are_one_run = are_one_run && (count == 0 || follows);
          wanted[count++] = &one;
        }
      }
      if (count == 0) return;
      const value_place first = wanted[0]->version.place;
      const std::uint32_t end = behind(wanted[count - 1]->version).offset;
      if (are_one_run && end - first.offset <= most_bytes_read_together) {
        together_ = {first.segment, first.offset, end};
        return;
      }
      context_.value_readers.with(
          [&](auto& drives) { drives.read(std::span(wanted).first(count), blocks::stream::values, [](auto) {}); });
    } catch (const std::exception&) {  // `read` tries each alone
      for (std::size_t i = 0; i < count; ++i) wanted[i]->blocks.reset();
    }
  }

  // Stores the value of `next` in `value`. Throws pmlab::error: the drive fails, or this is not the value that was
  // written.
  void read(const version_ahead& next, std::string& value) {
    const found_version& v = next.version;
    if (is_on_drive(v)) {
      if (next.cached != nullptr) {
        value = *next.cached;
        return;
      }
      ahead_ = is_near(v, before_) ? std::max(ahead_, least_bytes) : 0;
      before_ = behind(v);
      if ((next.blocks != nullptr && take(next.value(), v, value)) ||
          ((has(v) || bring(v)) && take(bytes_.bytes().subspan(v.place.offset - begin_, v.value_bytes), v, value)))
        return keep(v, value);
      end_ = begin_;  // damaged, or written since: the drive decides
    }
    value = read_value(context_, v);
  }

 private:
  // The place behind the value that was read last, and not in the cache.
  struct place_behind {
    std::uint32_t segment = 0;
    std::uint32_t offset = 0;
  };
  [[nodiscard]] static place_behind behind(const found_version& v) noexcept {
    return {v.place.segment, v.place.offset + v.value_bytes};
  }
  [[nodiscard]] static bool is_on_drive(const found_version& v) noexcept {
    return v.has_value() && v.node == nullptr && !v.value;
  }
  [[nodiscard]] bool is_near(const found_version& v, const place_behind& before) const noexcept {
    return v.place.segment == before.segment && v.place.offset >= before.offset &&
           v.place.offset - before.offset < context_.where.block_bytes;
  }
  // False: `bytes` are not the value that was written.
  [[nodiscard]] static bool take(std::span<const std::byte> bytes, const found_version& v, std::string& value) {
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return is_check_of(v.value_check, value);
  }

  void keep(const found_version& v, const std::string& value) const noexcept try {
    if (!context_.cache.has_room_for(value.size() + sizeof value)) return;
    context_.cache.add({0, v.sequence}, std::make_shared<const std::string>(value), value.size() + sizeof value);
  } catch (const std::bad_alloc&) {
  }

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
    std::uint64_t wanted = std::max<std::uint64_t>(end, begin + round_up(ahead_, block));
    if (v.place.segment == together_.segment && v.place.offset == together_.begin)
      wanted = std::max(wanted, round_up(std::uint64_t{together_.end}, block));
    const auto bytes = static_cast<std::uint32_t>(std::min(wanted, segment_bytes) - begin);
    end_ = begin_;
    // The memory of a larger value is not kept.
    const std::size_t most_kept = std::max<std::size_t>(bytes, most_bytes_read_together + 2 * block);
    if (bytes_.size() < bytes || bytes_.size() > most_kept) bytes_ = blocks::buffer(bytes);
    try {
      context_.readers.with([&, from = begin](auto& drives) {
        drives.read(v.place.segment, from, bytes_.bytes().first(bytes), blocks::stream::values);
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
  place_behind before_;
  std::uint32_t ahead_ = 0;  // bytes of the next run, if it has no larger value
  // Values that follow one another, and that `prepare` left to `read`.
  struct {
    std::uint32_t segment = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  } together_{};
};

}  // namespace pmlab::stores::detail::tiered
