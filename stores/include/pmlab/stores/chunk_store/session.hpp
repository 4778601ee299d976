// Whether the records of a chunk store and its drive are of one moment, and whether the drive was closed.
//
// Each opening of a store begins a session and each closing ends it: both take the next number. Odd: the store is in use,
// even: it was closed. The drive has the number in block 0, in one of two places in turn, so that a write that a crash
// tears leaves the number before it. Records that lie elsewhere have it, too.
//
//   (S1) the records promise the number, durable    (S2) the drive has it, durable    (S3) the records confirm it
//   (S1) < (S2) < (S3): a drive never has a number that its records have not promised, and has each that they confirmed.
// So a crash leaves a promise and the number before it, or the number. Less than that, and the drive is of an older moment
// than the records; more than that, and the records are of an older one.
//
// A copy that was made while a session ran is not told apart from another copy of the same session. Number 0: a store of
// before there were sessions.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>

namespace pmlab::stores::detail::chunk_store {

// The number that records have: promised, or confirmed.
struct known_session {
  std::uint64_t number = 0;
  bool is_confirmed = false;

  // A word with a check of its own; 0 for number 0.
  [[nodiscard]] std::uint64_t word() const noexcept {
    if (number == 0) return 0;
    const std::uint64_t value = number << 1 | (is_confirmed ? 1 : 0);
    return value << check_bits | check_of(value);
  }
  // Nothing: the word is damaged.
  [[nodiscard]] static std::optional<known_session> of(std::uint64_t from) noexcept {
    if (from == 0) return known_session{};
    const std::uint64_t value = from >> check_bits;
    if ((from & ((std::uint64_t{1} << check_bits) - 1)) != check_of(value)) return std::nullopt;
    return known_session{value >> 1, (value & 1) != 0};
  }

 private:
  static constexpr unsigned check_bits = 16;
  [[nodiscard]] static std::uint64_t check_of(std::uint64_t value) noexcept {
    return mix_bits(value) & ((std::uint64_t{1} << check_bits) - 1);
  }
};

// In block 0 of a drive, behind its headers: number n at place n modulo 2.
struct drive_session {
  std::uint64_t number = 0;
  std::uint64_t checksum = 0;  // of the number

  [[nodiscard]] static std::size_t place_of(std::uint64_t number) noexcept { return 128 + number % 2 * 64; }
  [[nodiscard]] std::uint64_t right_checksum() const noexcept { return pmlab::checksum(&number, sizeof number); }
};
static_assert(sizeof(drive_session) == 16 && std::is_trivially_copyable_v<drive_session>);

// The session of an open store. `Records`: has known() and keep(known_session), which is durable on return; false: there
// is no space, and the session has no number of its own. Thread safety: none.
template <blocks::device Device>
class session {
 public:
  explicit session(Device& device) : device_(device) {}

  // Reads the number of the drive, whose header is that of the store. Throws pmlab::error: it is damaged, the drive fails.
  void read() { number_ = number_on_drive(); }
  // The store was closed, so no write of it was cut off.
  [[nodiscard]] bool was_closed() const noexcept { return number_ != 0 && number_ % 2 == 0; }

  // Begins a session of a store whose records lie elsewhere: `where`, for errors. Throws pmlab::error: the drive and the
  // records are of different moments; the drive fails.
  template <class Records>
  void begin(Records& records, const std::string& where) {
    read();
    check(records.known(), where);
    advance(records, number_ + 1 + number_ % 2);
  }
  // Begins a session of a store whose records lie on the drive.
  void begin() {
    none no_records;
    advance(no_records, number_ + 1 + number_ % 2);
  }
  // Ends it; without effect if another opening has begun one, or the drive fails.
  template <class Records>
  void end(Records& records) noexcept {
    try {
      if (has_begun_ && number_on_drive() == number_) advance(records, number_ + 1);
    } catch (const std::exception&) {
      // The store looks as after a crash.
    }
  }
  void end() noexcept {
    none no_records;
    end(no_records);
  }

 private:
  struct none {
    [[nodiscard]] static bool keep(const known_session& /*k*/) noexcept { return true; }
  };

  template <class Records>
  void advance(Records& records, std::uint64_t to) {
    if (!records.keep({to, false})) return;  // (S1)
    write(to);                               // (S2)
    number_ = to;
    has_begun_ = true;
    static_cast<void>(records.keep({to, true}));  // (S3)
  }

  void check(const known_session& known, const std::string& where) const {
    constexpr std::uint64_t most_before_a_promise = 2;  // a session that was cut off has no closing
    static const char* const remedy = "give drive and records of one moment: restore both from one copy";
    const std::string on_drive = " (session " + std::to_string(number_) + ")";
    const std::string in_records = " (session " + std::to_string(known.number) + ")";
    const std::uint64_t least =
        known.is_confirmed ? known.number : known.number - std::min(known.number, most_before_a_promise);
    if (number_ < least)
      throw error("device " + device_.name() + on_drive +
                      " is of an older moment than the records of its chunk store in " + where + in_records +
                      ", or its session is damaged",
                  remedy);
    if (number_ > known.number)
      throw error("the records of the chunk store in " + where + in_records + " are of an older moment than device " +
                      device_.name() + on_drive,
                  remedy);
  }

  [[nodiscard]] std::uint64_t number_on_drive() {
    const blocks::buffer block = block_0();
    std::uint64_t newest = 0;
    bool is_damaged = false;
    for (std::uint64_t place = 0; place < 2; ++place) {
      drive_session there;
      std::memcpy(&there, block.data() + drive_session::place_of(place), sizeof there);
      if (there.number == 0 && there.checksum == 0) continue;
      if (there.number % 2 == place && there.checksum == there.right_checksum())
        newest = std::max(newest, there.number);
      else
        is_damaged = true;
    }
    if (newest == 0 && is_damaged)
      throw error("the session in block 0 of device " + device_.name() + " is damaged",
                  "restore the drive from a copy");
    return newest;
  }
  void write(std::uint64_t number) {
    blocks::buffer block = block_0();
    drive_session next{number, 0};
    next.checksum = next.right_checksum();
    std::memcpy(block.data() + drive_session::place_of(number), &next, sizeof next);
    blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest);
  }
  [[nodiscard]] blocks::buffer block_0() {
    blocks::buffer block(device_.shape().block_bytes);
    blocks::synchronous(device_).read(0, block.bytes(), blocks::stream::manifest);
    return block;
  }

  Device& device_;
  std::uint64_t number_ = 0;
  bool has_begun_ = false;
};

}  // namespace pmlab::stores::detail::chunk_store
