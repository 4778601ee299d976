// The concept of a block device: storage that is read and written in blocks, asynchronously, and that a crash can cut
// off.
//
// It is the sibling of media::medium. A store that uses both takes a medium for bytes and a device for blocks as
// template arguments. Devices: memory (blocks/memory.hpp), file (blocks/file.hpp). Wrappers: counted, emulated,
// recorded, faulty.
//
// Requests go through queues. A queue belongs to one thread; a device has any number of them. Requests in flight
// overlap in any order, also within one queue. docs/blocks.md is the guide.
//
// What a crash leaves (docs/memory-model.md has the rules with their tests):
//   (B1) A write is uncertain from its submission. A crash leaves each aligned unit of `atomic_bytes` (512 bytes if the
//        device promises nothing) in any version that was written since the last durable one. A later version in one
//        unit implies nothing about another unit.
//   (B2) A completed write_durable has made its units durable. A completed flush has made durable each write that had
//        completed before the flush was submitted. Without a volatile cache each completed write is durable.
//   (B3) Requests in flight that overlap take effect in any order.
//   (B4) After a discard a block holds its old content, zeros, or anything else.
//   (B5) A failed flush fails the device: no later request succeeds.
//   (B6) The data path changes no metadata of a file: its size never changes and its extents are written.
//   (B7) A queue orders nothing by itself: a flush that is submitted before a write completed does not cover that
//   write.
//
// What requests see of others that overlap them in time and in blocks:
//   (B8) Each aligned unit of `atomic_bytes` is whole: a read finds in it what one write left, never bytes of two, and
//        of two writes one has it. A drive keeps more together among commands (AWUN, NAWUN) than over a power failure
//        (AWUPF, NAWUPF), so one figure is a promise for both. A device that promises nothing (0) may mix bytes within
//        a block. A request of several units is no unit: a read may find the second unit of a write and not the first.
//
//   device                        keeps whole among requests
//   memory                        a block, or atomic_bytes if that is more, even if it promises nothing for a
//                                 power failure
//   file, direct I/O              the unit that the kernel states (STATX_WRITE_ATOMIC); a unit that it does not state
//                                 is, on most drives, a logical block of the drive
//   file, page cache              nothing: the kernel copies pages beside each other
//   counted, recorded, faulty,    as the device within; a fault of `faulty` is one of its request, not of requests
//   any_device, reference         beside it
//   timed, emulated               the bytes are the inner device's, at submission; promised is the smaller unit of both
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/stream.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace pmlab::blocks {

// A device promises nothing about a smaller unit: the sector of a disk.
inline constexpr std::uint32_t least_block_bytes = 512;
// The largest block that a device may have.
inline constexpr std::uint32_t most_block_bytes = 65536;

// The address of a request's data is a multiple of the block size, or of this if blocks are larger: enough for direct
// I/O. blocks::buffer begins at a multiple of this.
inline constexpr std::size_t data_alignment = 4096;

// The shape of a device, and its promises for a power failure and for requests that overlap.
struct geometry {
  std::uint64_t blocks = 0;          // blocks of the whole device
  std::uint32_t block_bytes = 4096;  // a power of two, 512 to 65536
  std::uint32_t atomic_bytes = 0;    // an aligned unit that a power failure (B1) and other requests (B8) keep whole: a
                                     // power of two; 0: no promise
  bool volatile_cache = true;        // completed writes need a flush

  // What a crash keeps whole: at least a sector.
  [[nodiscard]] std::uint32_t unit_bytes() const noexcept {
    return atomic_bytes < least_block_bytes ? least_block_bytes : atomic_bytes;
  }
  // The size of the whole device.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return blocks * block_bytes; }

  friend bool operator==(const geometry&, const geometry&) = default;
};

// The alignment that the data of requests to a device of this geometry needs.
[[nodiscard]] constexpr std::size_t alignment_of(const geometry& shape) noexcept {
  return shape.block_bytes < data_alignment ? shape.block_bytes : data_alignment;
}

// The kinds of requests.
enum class operation : std::uint8_t {
  read,
  write,          // durable after a later flush (B2)
  write_durable,  // durable when it completes
  flush,          // first, count and data mean nothing
  discard         // the content of these blocks is not needed any more; data means nothing
};

// True: a write, durable or not.
[[nodiscard]] constexpr bool writes(operation what) noexcept {
  return what == operation::write || what == operation::write_durable;
}
// True: its data means something.
[[nodiscard]] constexpr bool moves_data(operation what) noexcept { return what == operation::read || writes(what); }

// One request. It is copied by submit.
struct request {
  operation what = operation::read;  // its kind
  stream of = stream::data;          // for `counted`: what the bytes are for
  std::uint32_t count = 1;           // blocks
  std::uint64_t first = 0;           // block
  std::byte* data = nullptr;  // count blocks, unchanged by the user until the completion; aligned as alignment_of
  std::uint64_t tag = 0;      // returned with the completion
};

// `error` is std::errc{} on success. After an error of a write each of its blocks is old or new.
struct completion {
  std::uint64_t tag = 0;  // tag of the request
  std::errc error{};      // std::errc{}: none

  // True: the request took effect.
  [[nodiscard]] bool succeeded() const noexcept { return error == std::errc{}; }
};

// Errors of completions that have a meaning here; a device may return others, as no_space_on_device.
inline constexpr std::errc request_failed = std::errc::io_error;
// See request_failed.
inline constexpr std::errc device_failed = std::errc::state_not_recoverable;  // after a failed flush (B5)
// The request lies beyond the end of the device, and did nothing: what named its place is damaged.
inline constexpr std::errc beyond_end = std::errc::argument_out_of_domain;

// A queue of a device `D`. submit takes requests in their order and returns how many it took: fewer than given when the
// queue holds `depth` that were not reaped. reap waits until at least `at_least` completions are there (or all of those
// in flight, if these are fewer), writes as many as fit, and returns how many. Both throw pmlab::error for misuse:
// unaligned or missing data, no blocks; none of the requests is taken then. An error of the device is a completion,
// never an exception, and so is a request beyond its end: places come from records, which may be damaged. Destruction
// waits for the requests in flight.
template <class Q, class D>
concept queue_of = std::constructible_from<Q, D&, unsigned> &&
    requires(Q& q, std::span<const request> requests, std::span<completion> completions) {
  { q.submit(requests) } -> std::same_as<std::size_t>;
  { q.reap(completions, std::size_t{}) } -> std::same_as<std::size_t>;
  { q.in_flight() } -> std::same_as<std::size_t>;  // submitted and not reaped
  { q.depth() } -> std::same_as<unsigned>;
};

// `failure()` is empty while the device works; after a failed flush it states why every request fails. Thread safety:
// all of it from any thread; queues see above.
template <class D>
concept device = requires(D& d, const D& constant) {
  typename D::queue;
  { constant.shape() } -> std::same_as<geometry>;
  { constant.name() } -> std::convertible_to<std::string>;
  { constant.failure() } -> std::convertible_to<std::string>;
}
&&queue_of<typename D::queue, D>;

// Throws pmlab::error if a device of this geometry is impossible. `name`: the device's.
inline void check_geometry(const geometry& shape, const std::string& name) {
  const std::string device_name = "device " + name;
  if (!std::has_single_bit(shape.block_bytes) || shape.block_bytes < least_block_bytes ||
      shape.block_bytes > most_block_bytes)
    throw error(device_name + " has blocks of " + std::to_string(shape.block_bytes) + " bytes",
                "choose a power of two from 512 to 65536");
  if (shape.atomic_bytes != 0 && (!std::has_single_bit(shape.atomic_bytes) || shape.atomic_bytes < least_block_bytes))
    throw error(device_name + " has an atomic unit of " + std::to_string(shape.atomic_bytes) + " bytes",
                "choose 0 (no promise) or a power of two from 512");
  if (shape.blocks == 0) throw error(device_name + " has no blocks", "make it larger");
}

// A device of this geometry has all blocks of the request. Otherwise its completion is beyond_end.
[[nodiscard]] constexpr bool has_blocks_of(const geometry& shape, const request& r) noexcept {
  return r.what == operation::flush || (r.first < shape.blocks && shape.blocks - r.first >= r.count);
}

// Throws pmlab::error if no device of this geometry can take the request: its user is wrong.
inline void check_request(const geometry& shape, const request& r, const std::string& name) {
  if (r.what == operation::flush) return;
  if (r.count == 0) throw error("a request of no blocks to device " + name, "ask for at least one block");
  if (moves_data(r.what) && (r.data == nullptr || reinterpret_cast<std::uintptr_t>(r.data) % alignment_of(shape) != 0))
    throw error("the data of a request to device " + name + " does not begin at a multiple of " +
                    std::to_string(alignment_of(shape)) + " bytes",
                "use blocks::buffer");
}

// The words of a failed completion, for messages.
[[nodiscard]] inline std::string describe(std::errc e) {
  return e == beyond_end ? "beyond the end of the device" : std::make_error_code(e).message();
}

// The enumerator's name.
[[nodiscard]] constexpr std::string_view name_of(operation what) noexcept {
  switch (what) {
    case operation::read: return "read";
    case operation::write: return "write";
    case operation::write_durable: return "write_durable";
    case operation::flush: return "flush";
    case operation::discard: return "discard";
  }
  return "?";
}

}  // namespace pmlab::blocks
