// A request of blocks::file on its way to the drive: the part that is done, and the meaning of a system call's result.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/fail_stop.hpp>
#include <pmlab/blocks/file/facts.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

namespace pmlab::blocks::detail {

struct transfer {
  request what;
  std::uint64_t offset = 0;  // bytes from the start of the device
  std::uint64_t bytes = 0;   // bytes of the whole request
  std::uint64_t done = 0;    // bytes that are done

  transfer() = default;
  transfer(const request& r, std::uint32_t block_bytes) noexcept
      : what(r), offset(r.first * block_bytes), bytes(std::uint64_t{r.count} * block_bytes) {}

  [[nodiscard]] std::byte* place() const noexcept { return what.data + done; }
};

// The state of a file that all its queues share.
template <class System>
struct file_state {
  descriptor file;
  std::string name;  // name of the device
  geometry shape;
  drive_facts facts;
  bool direct = true;      // around the page cache
  bool read_only = false;  // requests that write fail
  System system;
  fail_stop failed;

  // The length of the next system call of a transfer: the kernel takes less than 2 GiB in one.
  [[nodiscard]] std::uint32_t next_bytes(const transfer& t) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    return system.asked(t.what.what, static_cast<std::uint32_t>(std::min(most, t.bytes - t.done)));
  }

  // The meaning of a system call's result for its request: an error or success. std::nullopt: it needs another call.
  [[nodiscard]] std::optional<std::errc> settle(transfer& t, std::int32_t found) {
    const operation what = t.what.what;
    const std::int32_t result = system.result(what, found);
    // Another queue's flush has failed meanwhile: the kernel tells one caller only, and this success may be of data
    // that it dropped.
    if (failed.failed()) return device_failed;
    if (what == operation::discard) return std::errc{};  // a hint: a drive that knows none does nothing
    if (what == operation::flush && result >= 0) return std::errc{};
    if (moves_data(what)) {
      if (result == -EINTR || result == -EAGAIN) return std::nullopt;
      // Direct I/O goes on at a whole block only.
      const std::int64_t whole = direct ? result - result % static_cast<std::int64_t>(facts.logical_block) : result;
      if (result > 0 && whole > 0) {
        t.done += static_cast<std::uint64_t>(whole);
        return t.done < t.bytes ? std::nullopt : std::optional(std::errc{});
      }
    }
    const int number = result < 0 ? -result : EIO;
    // A flush is never tried again: the kernel reports its error once and calls the lost pages clean (B5). With a
    // volatile cache a durable write contains a flush.
    if (what == operation::flush || (what == operation::write_durable && shape.volatile_cache))
      failed.fail(std::string(name_of(what)) + " of device " + name + " failed (" + std::strerror(number) + ")");
    return static_cast<std::errc>(number);
  }
};

}  // namespace pmlab::blocks::detail
