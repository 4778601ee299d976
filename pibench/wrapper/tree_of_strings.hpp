// An index of pmlab with keys and values of any other size than 8 bytes each, as PiBench sees it: a string index
// (strings/string_index.hpp) whose words are in the index of the recipe.
//
// Scans give keys of 8 bytes in the order of the unsigned integers that they are on this machine, as tree_of_words.hpp
// does: such a key is kept with its most significant byte first. Keys of any other size come in the order of their bytes.
//
// Thread safety, progress and durability are the string index's: what was answered survives a crash where the pool does.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/pibench/tree_api.hpp>
#include <pmlab/pibench/wrapper/answers.hpp>
#include <pmlab/pibench/wrapper/message.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::pibench {

// `Values`: strings::word_values, for values of 8 bytes, or strings::blob_values. Throws as tree_of_words does; besides,
// where the pool holds keys or values of another size than create_tree was told.
template <class Medium, class Recipe, class Values>
class tree_of_strings final : public tree_api {
  using word_index = decltype(std::declval<Recipe&>().open(std::declval<Medium&>()));
  using index_type = strings::string_index<Medium, word_index, Values>;

 public:
  template <class... MediumArguments>
  explicit tree_of_strings(std::string_view name, const tree_options_t& options, MediumArguments&&... of_the_medium)
      : name_(name),
        key_size_(options.key_size),
        value_size_(options.value_size),
        medium_(std::forward<MediumArguments>(of_the_medium)...),
        index_(index_type::open(medium_, root, [this] { return recipe_.open(medium_, root); })) {}

  bool find(const char* key, std::size_t key_size, char* value_out) override {
    return saying(name_, [&] {
      const auto value = index_.find(kept(key, key_size).view());
      if (value) copy_value(*value, value_out);
      return value.has_value();
    });
  }

  bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
    return saying(
        name_, [&] { return changed(index_.insert(kept(key, key_size).view(), view_of(value, value_size)), medium_); });
  }

  bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
    return saying(
        name_, [&] { return changed(index_.update(kept(key, key_size).view(), view_of(value, value_size)), medium_); });
  }

  bool remove(const char* key, std::size_t key_size) override {
    return saying(name_, [&] { return changed(index_.erase(kept(key, key_size).view()), medium_); });
  }

  // The records are this thread's until its next scan. An index without order answers none, and says so once.
  int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) override {
    values_out = nullptr;
    if constexpr (indexes::ordered_index<word_index>) {
      return saying(name_, [&] {
        static thread_local std::vector<char> records;
        records.clear();
        const auto most = static_cast<std::size_t>(std::max(scan_size, 0));
        const std::size_t found =
            index_.scan(kept(key, key_size).view(), most,
                        [&](std::string_view held, const auto& value) { append(records, held, value); });
        values_out = records.data();
        return static_cast<int>(found);
      });
    } else {
      if (!said_.exchange(true, std::memory_order_relaxed)) say(name_, no_order);
      return 0;
    }
  }

 private:
  // Beside what tree_of_words.hpp has in the pool.
  static inline const std::string root = std::string(word_index::layout_name) + "_s";
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);

  // A key as the index has it.
  class kept_key {
   public:
    kept_key(const char* key, std::size_t size) noexcept : key_(key), size_(size) {
      if (size != word_bytes) return;
      turn(key, turned_.data());
      is_turned_ = true;
    }
    [[nodiscard]] std::string_view view() const noexcept { return {is_turned_ ? turned_.data() : key_, size_}; }

   private:
    const char* key_;
    std::size_t size_;
    std::array<char, word_bytes> turned_{};
    bool is_turned_ = false;
  };

  // The bytes of an integer, the most significant first; or back.
  static void turn(const char* from, char* to) noexcept {
    static_assert(std::endian::native == std::endian::little);
    std::reverse_copy(from, from + word_bytes, to);
  }

  [[nodiscard]] kept_key kept(const char* key, std::size_t size) const {
    check_size("key", size, key_size_);
    return kept_key(key, size);
  }

  [[nodiscard]] typename index_type::value_view view_of(const char* value, std::size_t size) const {
    check_size("value", size, value_size_);
    if constexpr (Values::in_blocks) {
      return {value, size};
    } else {
      std::uint64_t word;
      std::memcpy(&word, value, sizeof word);
      return word;
    }
  }

  void copy_value(const typename index_type::value_type& value, char* out) const {
    if constexpr (Values::in_blocks) {
      check_held("values", value.size(), value_size_, "--value_size");
      std::memcpy(out, value.data(), value.size());
    } else {
      std::memcpy(out, &value, sizeof value);
    }
  }

  void append(std::vector<char>& records, std::string_view key, const typename index_type::value_type& value) const {
    check_held("keys", key.size(), key_size_, "--key_size");
    const std::size_t at = records.size();
    records.resize(at + key_size_ + value_size_);
    if (key.size() == word_bytes)
      turn(key.data(), records.data() + at);
    else
      std::memcpy(records.data() + at, key.data(), key.size());
    copy_value(value, records.data() + at + key_size_);
  }

  void check_held(const char* what, std::size_t held, std::size_t announced, const char* option) const {
    if (held == announced) return;
    throw error(
        medium_.name() + " holds " + what + " of " + std::to_string(held) + " bytes, not " + std::to_string(announced),
        std::string("give ") + option + " " + std::to_string(held) + ", or a new pool");
  }

  std::string name_;
  std::size_t key_size_;
  std::size_t value_size_;
  Recipe recipe_;
  Medium medium_;
  index_type index_;
  std::atomic<bool> said_{false};
};

}  // namespace pmlab::pibench
