// Types as keys: maps a value of up to 8 bytes to a word whose unsigned order is the order of the values.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace pmlab::strings {

// Defines how a K is a key. There is one for integers, enumerations, float and double, pairs of keys that fit into 64
// bits together, and structures with one such member (`struct order_id { std::uint64_t number; };`). Specialize it for
// a type of your own, with
//
//   static constexpr unsigned bits;              // 1 to 64: words are below 2^bits
//   static std::string kind();                   // up to 8 characters, part of the layout: the encoding of the words
//   static std::uint64_t to_word(const K& key);  // words have the order of the keys, and equal keys have equal words
//   static K from_word(std::uint64_t word);      // to_word's inverse
template <class K>
struct key_traits;

// A type that can be a key.
template <class K>
concept typed_key = std::is_trivially_copyable_v<K> && requires(const K& key, std::uint64_t word) {
  { key_traits<K>::bits } -> std::convertible_to<unsigned>;
  { key_traits<K>::kind() } -> std::convertible_to<std::string>;
  { key_traits<K>::to_word(key) } -> std::same_as<std::uint64_t>;
  { key_traits<K>::from_word(word) } -> std::same_as<K>;
};

// Integers, bool and characters: of signed ones the top bit is flipped.
template <std::integral K>
struct key_traits<K> {
  // Words are below 2^bits.
  static constexpr unsigned bits = 8 * sizeof(K);
  // "i4": signed, 4 bytes; "u8".
  [[nodiscard]] static std::string kind() { return (std::is_signed_v<K> ? "i" : "u") + std::to_string(sizeof(K)); }
  // See key_traits.
  [[nodiscard]] static std::uint64_t to_word(K key) noexcept {
    if constexpr (std::is_same_v<K, bool>)
      return key ? 1 : 0;
    else
      return static_cast<std::make_unsigned_t<K>>(key) ^ flipped;
  }
  // See key_traits.
  [[nodiscard]] static K from_word(std::uint64_t word) noexcept { return static_cast<K>(word ^ flipped); }

 private:
  static constexpr std::uint64_t flipped = std::is_signed_v<K> ? std::uint64_t{1} << (bits - 1) : 0;
};

// Enumerations, in the order of their numbers.
template <class K>
requires std::is_enum_v<K>
struct key_traits<K> {
  // The underlying type gives the word.
  using number = key_traits<std::underlying_type_t<K>>;
  // Words are below 2^bits.
  static constexpr unsigned bits = number::bits;
  // The kind of the underlying type.
  [[nodiscard]] static std::string kind() { return number::kind(); }
  // See key_traits.
  [[nodiscard]] static std::uint64_t to_word(K key) noexcept {
    return number::to_word(static_cast<std::underlying_type_t<K>>(key));
  }
  // See key_traits.
  [[nodiscard]] static K from_word(std::uint64_t word) noexcept { return static_cast<K>(number::from_word(word)); }
};

// float and double in the total order of IEEE 754: -NaN, -infinity, ..., -0.0, 0.0, ..., infinity, NaN. Keys are equal
// if all of their bits are: -0.0 and 0.0 are two keys.
template <class K>
requires std::same_as<K, float> || std::same_as<K, double>
struct key_traits<K> {
  // Words are below 2^bits.
  static constexpr unsigned bits = 8 * sizeof(K);
  // "f4" or "f8".
  [[nodiscard]] static std::string kind() { return "f" + std::to_string(sizeof(K)); }
  // See key_traits.
  [[nodiscard]] static std::uint64_t to_word(K key) noexcept {
    const auto word = std::bit_cast<pattern>(key);
    return static_cast<pattern>((word & sign) != 0 ? ~word : word | sign);
  }
  // See key_traits.
  [[nodiscard]] static K from_word(std::uint64_t word) noexcept {
    const auto stored = static_cast<pattern>(word);
    return std::bit_cast<K>(static_cast<pattern>((stored & sign) != 0 ? stored & ~sign : ~stored));
  }

 private:
  using pattern = std::conditional_t<sizeof(K) == 4, std::uint32_t, std::uint64_t>;
  static constexpr pattern sign = pattern{1} << (bits - 1);
};

namespace detail {

// Anything that a member can be made of.
struct any_member {
  template <class T>
  operator T() const;  // never defined
};

// A structure with exactly one member.
template <class K>
concept strong_typedef = std::is_aggregate_v<K> && std::is_class_v<K> && requires {
  K{any_member{}};
} && !requires {
  K{any_member{}, any_member{}};
};

template <strong_typedef K>
[[nodiscard]] constexpr auto member_of(const K& key) noexcept {
  const auto& [member] = key;
  return member;
}

template <strong_typedef K>
using member_type = decltype(member_of(std::declval<const K&>()));

}  // namespace detail

// A structure with one member, as that member is.
template <class K>
requires detail::strong_typedef<K> && typed_key<detail::member_type<K>>
struct key_traits<K> {
  // The member gives the word.
  using member = key_traits<detail::member_type<K>>;
  // Words are below 2^bits.
  static constexpr unsigned bits = member::bits;
  // The kind of the member.
  [[nodiscard]] static std::string kind() { return member::kind(); }
  // See key_traits.
  [[nodiscard]] static std::uint64_t to_word(const K& key) noexcept { return member::to_word(detail::member_of(key)); }
  // See key_traits.
  [[nodiscard]] static K from_word(std::uint64_t word) noexcept { return K{member::from_word(word)}; }
};

// Two keys: ordered by the first one, then by the second one. std::pair is not trivially copyable; this is.
template <class First, class Second>
struct key_pair {
  First first;    // decides
  Second second;  // decides between keys with the same first
  friend auto operator<=>(const key_pair&, const key_pair&) = default;
};

// See key_pair.
template <typed_key First, typed_key Second>
requires(key_traits<First>::bits + key_traits<Second>::bits <= 64) struct key_traits<key_pair<First, Second>> {
  // Words are below 2^bits.
  static constexpr unsigned bits = key_traits<First>::bits + key_traits<Second>::bits;
  // Both, one after the other: "u4i4".
  [[nodiscard]] static std::string kind() { return key_traits<First>::kind() + key_traits<Second>::kind(); }
  // See key_traits.
  [[nodiscard]] static std::uint64_t to_word(const key_pair<First, Second>& key) noexcept {
    return key_traits<First>::to_word(key.first) << key_traits<Second>::bits | key_traits<Second>::to_word(key.second);
  }
  // See key_traits.
  [[nodiscard]] static key_pair<First, Second> from_word(std::uint64_t word) noexcept {
    constexpr unsigned low = key_traits<Second>::bits;
    return {key_traits<First>::from_word(word >> low),
            key_traits<Second>::from_word(word & ~(~std::uint64_t{0} << low))};
  }
};

}  // namespace pmlab::strings
