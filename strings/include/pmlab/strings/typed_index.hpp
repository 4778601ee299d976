// Keys and values of a program's own types over any index.
//
//   struct order_id { std::uint64_t number; };
//   struct order { std::uint32_t article; std::uint32_t pieces; double price; };
//   using orders_type = strings::typed_index<order_id, order, media::pmem, indexes::fast_fair<media::pmem>>;
//   auto orders = orders_type::open(pool, "orders");
//   orders.insert(order_id{42}, order{7, 1, 9.99});
//
// Keys have up to 8 bytes and an order (typed_key.hpp); values are of any type that memcpy may copy. A value of up to 8
// bytes is stored next to its key, as the index's own are. A longer one is stored in a block of its own: the keys are
// strings then, and the values blobs (string_index.hpp), which makes an update atomic and prevents leaks at a crash.
//
// Thread safety, progress and durability: the index's, or the string index's for values in blocks.
//
// Layout (medium): named root NAME, of the index; NAME:t, whose layout has the types of keys and values; and NAME:s for
// values in blocks. A medium has room for media::root_limit roots.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/wanted_roots.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/string_index.hpp>
#include <pmlab/strings/typed_key.hpp>
#include <pmlab/strings/values.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pmlab::strings {

// A key and its value, of a program's own types.
template <class K, class V>
struct typed_entry {
  K key;    // any
  V value;  // any
};

// `K`: see key_traits. `V`: any type that is trivially copyable, up to blob_values::most_bytes; its bytes are stored
// unchanged, so pointers and references in it are invalid in the next run. `Index`: in `Medium`.
template <class K, class V, media::medium Medium, indexes::point_index Index>
class typed_index {
  static_assert(
      typed_key<K>,
      "K cannot be a key: it must be trivially copyable, have up to 8 bytes, and pmlab::strings::key_traits<K> "
      "must define its order (specialize it)");
  static_assert(std::is_trivially_copyable_v<V>, "V cannot be a value: it must be trivially copyable");
  static_assert(!std::is_pointer_v<V>, "V cannot be a value: a pointer means nothing to the next run");
  static_assert(sizeof(V) <= blob_values::most_bytes, "V cannot be a value: it is too long");

  static constexpr bool in_place = sizeof(V) <= sizeof(std::uint64_t);
  static constexpr bool is_ordered = indexes::ordered_index<Index>;
  using traits = key_traits<K>;
  using below_type = std::conditional_t<in_place, Index, string_index<Medium, Index, blob_values>>;

 public:
  // The type of keys.
  using key_type = K;
  // The type of values.
  using value_type = V;
  // See typed_entry.
  using entry = typed_entry<K, V>;
  // The layout of root NAME:t.
  static constexpr std::uint64_t layout_version = 1;

  // Opens the index `name` (1 to 21 characters) in `medium`, or makes an empty one. An index of that name that was made
  // without types gets these. Throws pmlab::error: it has another layout, or other types of keys or values; no space.
  // `medium` must outlive the index.
  static typed_index open(Medium& medium, std::string_view name) {
    return open(medium, name, [&] {
      std::vector<media::wanted_root> roots = own_roots(name);
      roots.push_back({std::string(name)});
      media::check_roots(medium, roots);
      return Index::open(medium, name);
    });
  }
  // The same over the index that `open_index()` returns: a cache, a hybrid, one with options.
  template <class OpenIndex>
  static typed_index open(Medium& medium, std::string_view name, OpenIndex&& open_index) {
    constexpr std::size_t longest_name = media::root_name_limit - types_suffix.size();
    check_name(name, longest_name, "a typed index");
    media::check_roots(medium, own_roots(name));
    return typed_index(medium, name, open_index);
  }

  // The layout of root NAME:t: "typed_u8_b24" for unsigned keys of 8 bytes, and values of 24. i: signed, f: floating
  // point, b: any other bytes; pairs have both kinds.
  [[nodiscard]] static std::string layout() {
    std::string values = "b" + std::to_string(sizeof(V));
    if constexpr (std::is_arithmetic_v<V>) values = key_traits<V>::kind();
    return std::string(typed_layout_prefix).append(traits::kind()).append("_").append(values);
  }

  // Adds (key, value): inserted, exists or full. As the index's own, durable on return where the medium is.
  indexes::outcome insert(const K& key, const V& value) {
    return with(key, value, [this](auto k, auto v) { return below_.insert(k, v); });
  }
  // Adds (key, value) or replaces the value of `key`: inserted, updated or full. Durable on return.
  indexes::outcome upsert(const K& key, const V& value) {
    return with(key, value, [this](auto k, auto v) { return below_.upsert(k, v); });
  }
  // Replaces the value of `key`: updated, absent or full. Durable on return. After a crash there is all of one value.
  indexes::outcome update(const K& key, const V& value) {
    return with(key, value, [this](auto k, auto v) { return below_.update(k, v); });
  }
  // Removes `key`: erased, absent or full. Durable on return.
  indexes::outcome erase(const K& key) { return below_.erase(key_below(key).view()); }

  // The value of `key`. Throws pmlab::error: the medium holds a value of another size, so it is damaged.
  [[nodiscard]] std::optional<V> find(const K& key) {
    const auto found = below_.find(key_below(key).view());
    return found ? std::optional<V>(value_of(*found)) : std::nullopt;
  }

  // Calls function(key, value) with up to `most` entries whose keys are >= from, in the order of keys; returns how many
  // there were. Writers may run.
  template <class Function>
  std::size_t scan(const K& from, std::size_t most, Function&& function) requires is_ordered {
    if constexpr (in_place) {
      constexpr std::size_t at_once = 64;
      std::array<indexes::entry, at_once> found;
      std::size_t count = 0;
      for (std::uint64_t next = traits::to_word(from); count < most;) {
        const auto some = std::span(found).first(std::min(most - count, at_once));
        const std::size_t there = below_.scan(next, some);
        for (const indexes::entry& e : some.first(there)) function(traits::from_word(e.key), value_of(e.value));
        count += there;
        if (there < some.size() || some.back().key == std::numeric_limits<std::uint64_t>::max()) break;
        next = some.back().key + 1;
      }
      return count;
    } else {
      return below_.scan(key_below(from).view(), most, [&](std::string_view key, std::string_view value) {
        function(key_below::key_of(key), value_of(value));
      });
    }
  }

  // Calls function(key, value) for every entry of [first, last], in the order of keys. Writers may run.
  template <class Function>
  void for_each_in(const K& first, const K& last, Function&& function) requires is_ordered {
    below_.for_each_in(key_below(first).view(), key_below(last).view(),
                       [&](auto key, auto value) { function(key_below::key_of(key), value_of(value)); });
  }

  // Calls function(key, value) for every entry. No concurrent writer.
  template <class Function>
  void for_each(Function&& function) const {
    below_.for_each([&](auto key, auto value) { function(key_below::key_of(key), value_of(value)); });
  }

  // Adds many entries, whose keys ascend strictly: see indexes::loadable_index. For values of up to 8 bytes.
  std::size_t load(std::span<const entry> ascending) requires(in_place&& indexes::loadable_index<Index>) {
    constexpr std::size_t at_once = 4096;
    std::vector<indexes::entry> words;
    std::size_t done = 0;
    while (done < ascending.size()) {
      words.clear();
      for (const entry& e : ascending.subspan(done, std::min(at_once, ascending.size() - done)))
        words.push_back({traits::to_word(e.key), word_of(e.value)});
      const std::size_t loaded = below_.load(words);
      done += loaded;
      if (loaded < words.size()) break;
    }
    return done;
  }

  // Entries; walks the index.
  [[nodiscard]] std::uint64_t size() const { return below_.size(); }
  // Shape and space, values in blocks included; walks the index.
  [[nodiscard]] indexes::index_stats stats() const { return below_.stats(); }
  // Invariants of the index, and that each key and value is one of these types. No concurrent writer.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report = below_.check();
    if (!report.ok()) return report;
    below_.for_each([&](auto key, auto value) {
      if constexpr (in_place) {
        if (traits::bits < 64 && key >> (traits::bits % 64) != 0)
          report.add("key " + std::to_string(key) + " is none of kind " + traits::kind());
        static_cast<void>(value);
      } else {
        if (key.size() != key_below::bytes) report.add("a key of " + std::to_string(key.size()) + " bytes");
        if (value.size() != sizeof(V)) report.add("a value of " + std::to_string(value.size()) + " bytes");
      }
    });
    return report;
  }

 private:
  // A key as the index below has it: a word, or its bytes, the most significant one first.
  class key_below {
   public:
    static constexpr std::size_t bytes = (traits::bits + 7) / 8;

    explicit key_below(const K& key) noexcept : word_(traits::to_word(key)) {
      if constexpr (!in_place)
        for (std::size_t i = 0; i < bytes; ++i) text_[i] = static_cast<char>(word_ >> (8 * (bytes - 1 - i)));
    }
    [[nodiscard]] auto view() const noexcept {
      if constexpr (in_place)
        return word_;
      else
        return std::string_view(text_.data(), bytes);
    }

    [[nodiscard]] static K key_of(std::uint64_t word) { return traits::from_word(word); }
    [[nodiscard]] static K key_of(std::string_view text) {
      std::uint64_t word = 0;
      for (const char c : text) word = word << 8 | static_cast<unsigned char>(c);
      return traits::from_word(word);
    }

   private:
    std::uint64_t word_;
    std::array<char, bytes> text_{};
  };

  [[nodiscard]] static std::uint64_t word_of(const V& value) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  [[nodiscard]] static V value_of(std::uint64_t word) noexcept {
    std::array<std::byte, sizeof(V)> bytes;
    std::memcpy(bytes.data(), &word, sizeof(V));
    return std::bit_cast<V>(bytes);
  }
  [[nodiscard]] static V value_of(std::string_view blob) {
    if (blob.size() != sizeof(V))
      throw error(
          "a value of " + std::to_string(blob.size()) + " bytes stands where values have " + std::to_string(sizeof(V)),
          "check the pool: pmlab pool check");
    std::array<std::byte, sizeof(V)> bytes;
    std::memcpy(bytes.data(), blob.data(), sizeof(V));
    return std::bit_cast<V>(bytes);
  }

  template <class Operation>
  static indexes::outcome with(const K& key, const V& value, Operation&& operation) {
    const key_below k(key);
    if constexpr (in_place)
      return operation(k.view(), word_of(value));
    else
      return operation(k.view(), std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }

  template <class OpenIndex>
  typed_index(Medium& medium, std::string_view name, OpenIndex&& open_index)
      : below_(open_below(medium, name, open_index)) {
    // Last: an index that does not open gets no types.
    const media::wanted_root types = types_root(name);
    static_cast<void>(medium.named_root(types.name, types.layout, types.version));
  }
  [[nodiscard]] static media::wanted_root types_root(std::string_view name) {
    return {std::string(name).append(types_suffix), layout(), layout_version};
  }
  // Those beside the root of the index that it is over.
  [[nodiscard]] static std::vector<media::wanted_root> own_roots(std::string_view name) {
    std::vector<media::wanted_root> roots{types_root(name)};
    if constexpr (!in_place) roots.push_back({std::string(name).append(state_suffix)});
    return roots;
  }

  template <class OpenIndex>
  [[nodiscard]] static below_type open_below(Medium& medium, std::string_view name, OpenIndex&& open_index) {
    if constexpr (in_place)
      return open_index();
    else
      return below_type::open(medium, name, open_index);
  }

  below_type below_;
};

}  // namespace pmlab::strings
