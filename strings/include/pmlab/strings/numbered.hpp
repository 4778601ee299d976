// A string index with the interface of an index of numbers, so that tests, verification and measurements of those also
// run on strings. Each number is a key of its own, and the order of keys is that of their numbers.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::strings {

// Where a key is made: short ones without an allocation.
class key_room {
 public:
  // `bytes` bytes, uninitialized; valid until the next call.
  [[nodiscard]] char* of(std::size_t bytes) {
    if (bytes <= short_.size()) return short_.data();
    long_.resize(bytes);
    return long_.data();
  }
  // An empty string.
  [[nodiscard]] std::string& text() {
    long_.clear();
    return long_;
  }

 private:
  std::array<char, 128> short_;
  std::string long_;
};

// Keys of many shapes: "" for 0; each byte of the number's half, most significant first, with up to three zero bytes
// behind it; odd ones have the key of the even one before them as their first part; some are long.
struct varied_keys {
  // The key is in `room`, and valid as long as that is not changed.
  [[nodiscard]] std::string_view key_of(std::uint64_t number, key_room& room) const {
    std::string& key = room.text();
    if (number == 0) return key;
    const std::uint64_t half = number / 2;
    for (int shift = 56; shift >= 0; shift -= 8) {
      const auto byte = static_cast<unsigned char>(half >> shift);
      key += static_cast<char>(byte);
      key.append(zeros_after(byte), '\0');
    }
    if (number % 2 != 0) key.append(half % 64 == 5 ? 300 : 1, 'x');
    return key;
  }

  // The number whose key this is.
  [[nodiscard]] std::uint64_t number_of(std::string_view key) const {
    if (key.empty()) return 0;
    std::uint64_t half = 0;
    std::size_t at = 0;
    for (int i = 0; i < 8 && at < key.size(); ++i) {
      const auto byte = static_cast<unsigned char>(key[at]);
      half = half << 8 | byte;
      at += 1 + zeros_after(byte);
    }
    const std::uint64_t number = 2 * half + (at < key.size() ? 1 : 0);
    // Any other string than the number's own is returned as a number that was never inserted.
    key_room own;
    return key_of(number, own) == key ? number : ~number;
  }

 private:
  [[nodiscard]] static constexpr std::size_t zeros_after(unsigned char byte) noexcept { return byte & 3; }
};

// Values of word_values are numbers as they are; those of blob_values have the number in front of up to 200 bytes, and
// are empty for 0.
template <class Values>
[[nodiscard]] auto value_of_number(std::uint64_t number) {
  if constexpr (Values::in_blocks) {
    if (number == 0) return std::string();
    constexpr std::size_t most_filling = 200;
    std::string value(sizeof number + number % most_filling, static_cast<char>(number));
    std::memcpy(value.data(), &number, sizeof number);
    return value;
  } else {
    return number;
  }
}
// The number that a value was made of; another one, if it was made of none.
template <class Values>
[[nodiscard]] std::uint64_t number_of_value(const typename Values::value_type& value) {
  if constexpr (Values::in_blocks) {
    std::uint64_t number = 0;
    if (value.empty()) return number;
    if (value.size() < sizeof number) return ~number;
    std::memcpy(&number, value.data(), sizeof number);
    if (number == 0 && value.size() == sizeof number) return number;  // as 0 was written before it was empty
    return value_of_number<Values>(number) == value ? number : ~number;
  } else {
    return value;
  }
}

// Thread safety, progress, durability: the string index's.
template <media::medium Medium, class Index, class Values = word_values, class Keys = varied_keys,
          class Hash = detail::key_hash>
class numbered {
  using strings_type = string_index<Medium, Index, Values, Hash>;
  static constexpr bool is_ordered = indexes::ordered_index<Index>;
  using key_type = indexes::key_type;
  using value_type = indexes::value_type;

  static constexpr auto name_characters = [] {
    constexpr std::string_view prefix = layout_prefix;
    std::array<char, prefix.size() + Index::layout_name.size() + 1> all{};
    std::copy(prefix.begin(), prefix.end(), all.begin());
    std::copy(Index::layout_name.begin(), Index::layout_name.end(), all.begin() + prefix.size());
    return all;
  }();

 public:
  // "strings_" and the name of the index of the words.
  static constexpr std::string_view layout_name{name_characters.data(), name_characters.size() - 1};
  static constexpr std::uint64_t layout_version = strings_type::layout_version;

  // As string_index::open.
  static numbered open(Medium& medium, std::string_view name = layout_name) {
    return numbered(
        medium, name, [&] { return Index::open(medium, name); }, Keys{});
  }
  // The same with words and keys of the caller's.
  template <class OpenWords>
  static numbered open(Medium& medium, std::string_view name, OpenWords&& open_words, Keys keys) {
    return numbered(medium, name, open_words, std::move(keys));
  }

  indexes::outcome insert(key_type key, value_type value) {
    key_room room;
    return strings_.insert(keys_.key_of(key, room), value_of_number<Values>(value));
  }
  indexes::outcome upsert(key_type key, value_type value) {
    key_room room;
    return strings_.upsert(keys_.key_of(key, room), value_of_number<Values>(value));
  }
  indexes::outcome update(key_type key, value_type value) {
    key_room room;
    return strings_.update(keys_.key_of(key, room), value_of_number<Values>(value));
  }
  indexes::outcome erase(key_type key) {
    key_room room;
    return strings_.erase(keys_.key_of(key, room));
  }

  std::optional<value_type> find(key_type key) {
    key_room room;
    return to_number(strings_.find(keys_.key_of(key, room)));
  }

  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    assert(keys.size() == values.size());
    std::vector<key_room> rooms(keys.size());
    std::vector<std::string_view> views(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) views[i] = keys_.key_of(keys[i], rooms[i]);
    std::vector<std::optional<typename Values::value_type>> found(keys.size());
    strings_.find_batch(views, found);
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = to_number(found[i]);
  }

  std::size_t scan(key_type from, std::span<indexes::entry> out) requires is_ordered {
    std::size_t count = 0;
    key_room room;
    return strings_.scan(keys_.key_of(from, room), out.size(), [&](std::string_view key, const auto& value) {
      out[count++] = {keys_.number_of(key), number_of_value<Values>(value)};
    });
  }
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) requires is_ordered {
    key_room room;
    key_room room_of_last;
    strings_.for_each_in(keys_.key_of(first, room), keys_.key_of(last, room_of_last),
                         [&](std::string_view key, const auto& value) {
                           function(keys_.number_of(key), number_of_value<Values>(value));
                         });
  }
  template <class Function>
  void for_each(Function&& function) const {
    strings_.for_each([&](std::string_view key, const auto& value) {
      function(keys_.number_of(key), number_of_value<Values>(value));
    });
  }

  [[nodiscard]] std::uint64_t size() const { return strings_.size(); }
  [[nodiscard]] indexes::index_stats stats() const { return strings_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return strings_.check(); }
  // The index of strings itself.
  [[nodiscard]] strings_type& strings() noexcept { return strings_; }

 private:
  template <class OpenWords>
  numbered(Medium& medium, std::string_view name, OpenWords&& open_words, Keys keys)
      : keys_(std::move(keys)), strings_(strings_type::open(medium, name, open_words)) {}

  [[nodiscard]] static std::optional<value_type> to_number(const std::optional<typename Values::value_type>& found) {
    return found ? std::optional(number_of_value<Values>(*found)) : std::nullopt;
  }

  Keys keys_;
  strings_type strings_;
};

}  // namespace pmlab::strings
