// Whether the records of a chunk store and its drive are of one moment, and whether the drive was closed.
//
// Each opening of a store and each closing is a moment (stores/moment.hpp). Odd numbers: the store is in use, even
// ones: it was closed. The drive keeps its moment in block 0, in one of two places in turn, so that a write that a
// crash tears leaves the moment before. Records that lie elsewhere know two moments: one that was begun, and one that
// is durable.
//
//   (S1) the records know that the last moment is durable    (S2) they have begun the next one
//   (S3) the drive has it                                    (S4) they know that it is durable
//   (S1) < (S2) < (S3) < (S4), each step durable: whatever is cut off, the drive has one of the two that its records
//   know.
//
// A copy that was made while a session ran is not told apart from another copy of the same session. A release of before
// there were sessions changes neither moment: what it changed in drive or records is not told apart either. Moment 0: a
// store of before there were sessions. A release before had numbers without marks: its promise of number n may have
// left n - 2, or more, on the drive.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/moment.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace pmlab::stores::detail::chunk_store {

// A moment that records keep: in a word with a check of its own, which has space for a mark of 24 bits.
struct kept_moment {
  moment is{};
  bool is_promise = false;  // a release before had promised it only

  // 0 for no moment.
  [[nodiscard]] std::uint64_t word() const noexcept {
    if (is == moment()) return 0;
    const std::uint64_t value = is.mark() == 0 ? is.number() << 1 | (is_promise ? 0 : 1) : is.word();
    return value << check_bits | check_of(value);
  }
  // The moment in a word, or std::nullopt if the word is damaged.
  [[nodiscard]] static std::optional<kept_moment> of(std::uint64_t from) noexcept {
    if (from == 0) return kept_moment{};
    const std::uint64_t value = from >> check_bits;
    if ((from & ((std::uint64_t{1} << check_bits) - 1)) != check_of(value)) return std::nullopt;
    // A release before: the number, and whether it was confirmed.
    if (moment(value).mark() == 0) return kept_moment{moment(value >> 1), (value & 1) == 0};
    return kept_moment{moment(value)};
  }
  [[nodiscard]] static moment next(std::uint64_t number) {
    return {moment::with_number(0).mark() & largest_mark, number};
  }

 private:
  static constexpr unsigned check_bits = 16;
  static constexpr std::uint64_t largest_mark = (std::uint64_t{1} << 24) - 1;
  [[nodiscard]] static std::uint64_t check_of(std::uint64_t value) noexcept {
    return mix_bits(value) & ((std::uint64_t{1} << check_bits) - 1);
  }
};

// What records know of their drive.
struct kept_moments {
  kept_moment durable;
  kept_moment begun;

  // The moments in two words, or std::nullopt if a word is damaged.
  [[nodiscard]] static std::optional<kept_moments> of(std::uint64_t durable, std::uint64_t begun) noexcept {
    const auto first = kept_moment::of(durable);
    const auto second = kept_moment::of(begun);
    return first && second ? std::optional(kept_moments{*first, *second}) : std::nullopt;
  }
};

// A number of writes of an index that is not known: a release before did not keep it.
inline constexpr std::uint64_t unknown_writes = ~std::uint64_t{0};

// In block 0 of a drive, behind its headers: in the first of two places or in the second.
struct drive_session {
  std::uint64_t word = 0;      // the moment's
  std::uint64_t checksum = 0;  // covers the other words
  std::uint64_t order = 0;     // the higher one is newer. 0: of a release before, whose number n is at place n modulo 2
  std::uint64_t writes = 0;    // number of writes of the index on this drive, when the store was closed

  [[nodiscard]] static constexpr std::size_t offset_of(std::size_t place) noexcept { return 128 + place * 64; }
  [[nodiscard]] std::uint64_t right_checksum() const noexcept {
    return pmlab::checksum(summed().data(), summed_bytes());
  }
  [[nodiscard]] bool is_right(std::size_t place) const noexcept {
    return is_checksum(checksum, summed().data(), summed_bytes()) && (order != 0 || moment(word).number() % 2 == place);
  }
  [[nodiscard]] bool is_empty() const noexcept { return word == 0 && checksum == 0 && order == 0; }
  [[nodiscard]] bool is_newer_than(const drive_session& o) const noexcept {
    return std::pair(order, moment(word).number()) > std::pair(o.order, moment(o.word).number());
  }

 private:
  [[nodiscard]] std::array<std::uint64_t, 3> summed() const noexcept { return {word, order, writes}; }
  [[nodiscard]] std::size_t summed_bytes() const noexcept { return (order == 0 ? 1 : 3) * sizeof word; }
};
static_assert(sizeof(drive_session) == 32 && std::is_trivially_copyable_v<drive_session>);

// The session of an open store. `Records`: has known() and keep(kept_moments), which is durable on return, the durable
// moment before the begun one; false: there is no space, and the session has no moment of its own. Thread safety: none.
template <blocks::device Device>
class session {
 public:
  explicit session(Device& device) : device_(device) {}

  // Reads the moment of the drive, whose header is the store's. Throws pmlab::error: it is damaged, the drive fails.
  void read() {
    // What the last process left in the drive's cache must not be lost when it is known to be durable.
    changing_drive([&] { blocks::synchronous(device_).flush(blocks::stream::manifest); });
    find_moment(block_0());
  }
  // The store was closed, so no write of it was cut off. False if that cannot be known.
  [[nodiscard]] bool was_closed() const noexcept {
    return now().number() != 0 && now().number() % 2 == 0 && !has_damaged_place_;
  }
  // How many writes the index had then; more, and a release of before there were sessions has used the store since. 0:
  // it was not closed. unknown_writes: any number is right.
  [[nodiscard]] std::uint64_t closed_at() const noexcept {
    return !was_closed() ? 0 : newest_.order == 0 ? unknown_writes : newest_.writes;
  }

  // Begins a session of a store whose records lie elsewhere: `where`, for errors. Throws pmlab::error: the drive and
  // the records are of different moments; the drive fails.
  template <class Records>
  void begin(Records& records, const std::string& where) {
    read();
    check(records.known(), where);
    advance(records, 1);
  }
  // Begins a session of a store whose records lie on the drive.
  void begin() {
    none no_records;
    advance(no_records, 1);
  }
  // Ends it; without effect if another opening has begun one, or the drive fails. `writes`: of an index on the drive.
  template <class Records>
  void end(Records& records, std::uint64_t writes = 0) noexcept {
    try {
      const moment own = now();
      if (!has_begun_) return;
      find_moment(block_0());
      if (now() == own) advance(records, 0, writes);
    } catch (const std::exception&) {
      // The store looks as after a crash.
    }
  }
  void end(std::uint64_t writes) noexcept {
    none no_records;
    end(no_records, writes);
  }

 private:
  struct none {
    [[nodiscard]] static bool keep(const kept_moments& /*k*/) noexcept { return true; }
  };

  [[nodiscard]] moment now() const noexcept { return moment(newest_.word); }
  // The next number with this remainder modulo 2. Behind the largest one, marks alone differ.
  [[nodiscard]] std::uint64_t next_number(std::uint64_t remainder) const noexcept {
    const std::uint64_t next = now().number() + 1 + (now().number() + 1 + remainder) % 2;
    return next <= moment::largest_number ? next : moment::largest_number - (moment::largest_number + remainder) % 2;
  }

  template <class Records>
  void advance(Records& records, std::uint64_t remainder, std::uint64_t writes = 0) {
    const kept_moment last{now()};
    const kept_moment next{kept_moment::next(next_number(remainder))};
    if (!records.keep({last, next})) return;  // (S1), (S2)
    write(next.is, writes);                   // (S3)
    has_begun_ = true;
    // Without it, a drive of the moment before would be taken for this one. The next opening goes on with this moment.
    if (!records.keep({next, next}))  // (S4)
      throw error(
          "no space for the session of the chunk store on device " + device_.name() + ": where its records are is full",
          "remove pairs that are not the store's, or use a larger device");
  }

  void check(const kept_moments& kept, const std::string& where) const {
    const kept_moment& begun = kept.begun.is == moment() ? kept.durable : kept.begun;
    known_moments known{kept.durable.is, begun.is};
    constexpr std::uint64_t most_before_a_promise = 2;  // a session that was cut off has no closing
    if (begun.is_promise && now().mark() == 0 && now().number() <= begun.is.number() &&
        now().number() + most_before_a_promise >= begun.is.number())
      return;
    const std::string drive = "device " + device_.name() + " (session " + std::to_string(now().number()) + ")";
    const std::string records =
        "the records of the chunk store in " + where + " (session " + std::to_string(known.begun.number()) + ")";
    switch (compare(now(), known)) {
      case moment_verdict::same: return;
      case moment_verdict::part_is_older:
        refuse(drive + " is of an older moment than " + records + ", or its session is damaged");
      case moment_verdict::known_is_older: refuse(records + " are of an older moment than " + drive);
      case moment_verdict::differ: refuse(drive + " and " + records + " are of two copies that were both used");
    }
  }
  [[noreturn]] static void refuse(const std::string& problem) {
    throw error(problem, "give drive and records of one moment: restore both from one copy");
  }

  void find_moment(const blocks::buffer& block) {
    newest_ = {};
    has_damaged_place_ = false;
    for (std::size_t place = 0; place < 2; ++place) {
      drive_session there;
      std::memcpy(&there, block.data() + drive_session::offset_of(place), sizeof there);
      if (there.is_empty()) continue;
      if (!there.is_right(place)) {
        has_damaged_place_ = true;
      } else if (newest_.is_empty() || there.is_newer_than(newest_)) {
        newest_ = there;
        place_ = place;
      }
    }
    if (newest_.is_empty() && has_damaged_place_)
      throw error("the session in block 0 of device " + device_.name() + " is damaged",
                  "restore the drive from a copy");
  }
  // A program of an earlier release takes this session for damaged, and goes on with one of its own in the other place:
  // without the changes behind it. So that place has this session, too, before there is a change.
  void write(moment m, std::uint64_t writes) {
    const bool other_has_earlier_checksum = !newest_.is_empty() && newest_.checksum != newest_.right_checksum();
    write_place(m, writes);
    if (other_has_earlier_checksum) write_place(m, writes);
  }
  void write_place(moment m, std::uint64_t writes) {
    blocks::buffer block = block_0();
    drive_session next{m.word(), 0, newest_.order + 1, writes};
    next.checksum = next.right_checksum();
    std::memcpy(block.data() + drive_session::offset_of(1 - place_), &next, sizeof next);
    changing_drive([&] { blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest); });
    newest_ = next;
    place_ = 1 - place_;
  }
  // A drive may refuse writes and still be read: the error names the cause.
  template <class Step>
  void changing_drive(Step&& step) const {
    try {
      step();
    } catch (const error& e) {
      throw error(
          "the chunk store on device " + device_.name() + " cannot begin a session, which is a write: " + e.what(),
          "if the drive can only be read, copy it to one that takes writes, and open the store on that");
    }
  }
  [[nodiscard]] blocks::buffer block_0() { return blocks::read_block(device_, 0, blocks::stream::manifest); }

  Device& device_;
  drive_session newest_;
  std::size_t place_ = 1;  // where the newest one is
  bool has_damaged_place_ = false;
  bool has_begun_ = false;
};

}  // namespace pmlab::stores::detail::chunk_store
