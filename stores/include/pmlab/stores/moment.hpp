// A moment of a store, and whether two parts of a store are of one moment: a drive and the memory that names what is on
// it.
//
// Each opening is a moment (of some stores each closing, too): a number one greater than the last, and a random mark.
// The number shows which of two parts is older. The mark distinguishes two moments that have the same number, as when
// two copies of a store were both used.
//
// One part keeps a moment. The other part, which knows of it, keeps two: one that was begun, and one that was durable.
//   (M1) the moment is begun  <  (M2) the part has it  <  (M3) it is known to be durable: each step durable.
// So after a crash the part has one of these two moments, or it is a copy of another time.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstdint>
#include <random>

namespace pmlab::stores::detail {

[[nodiscard]] inline std::uint64_t random_word() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// What the parts of one store have in common, and no other store has.
using store_identity = std::array<std::uint64_t, 2>;

// `given`, or one that is drawn, if it is zeros. Throws std::exception: the system has no random numbers.
[[nodiscard]] inline store_identity identity_or_drawn(store_identity given) {
  if (given == store_identity{})
    for (std::uint64_t& w : given) w = random_word();
  return given;
}

class moment {
 public:
  static constexpr unsigned number_bits = 24;
  static constexpr std::uint64_t largest_number = (std::uint64_t{1} << number_bits) - 1;

  // From its word. A word with nothing but a number is a moment of a release before there were marks.
  explicit moment(std::uint64_t word = 0) noexcept : word_(word) {}
  // `mark`: its lower 40 bits.
  moment(std::uint64_t mark, std::uint64_t number) noexcept : word_(mark << number_bits | number) {}
  // A new one with this number. Throws std::exception: the system has no random numbers.
  [[nodiscard]] static moment with_number(std::uint64_t number) { return moment(random_word() | 1, number); }

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return word_ & largest_number; }
  [[nodiscard]] std::uint64_t mark() const noexcept { return word_ >> number_bits; }
  [[nodiscard]] bool operator==(const moment&) const noexcept = default;

 private:
  std::uint64_t word_;
};

// What one part knows of the moment of the other. Equal, unless a step was interrupted.
struct known_moments {
  moment durable;
  moment begun;
};

enum class moment_verdict { same, part_is_older, known_is_older, differ };

[[nodiscard]] inline moment_verdict compare(moment of_part, const known_moments& known) noexcept {
  if (of_part == known.durable || of_part == known.begun) return moment_verdict::same;
  if (of_part.number() < known.durable.number()) return moment_verdict::part_is_older;
  if (of_part.number() > known.begun.number()) return moment_verdict::known_is_older;
  return moment_verdict::differ;
}

}  // namespace pmlab::stores::detail
