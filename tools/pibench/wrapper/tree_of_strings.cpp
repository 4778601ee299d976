// String keys of pmlab's libraries for PiBench.
#include "tools/pibench/wrapper/answers.hpp"
#include "tools/pibench/wrapper/message.hpp"
#include "tools/pibench/wrapper/trees.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/strings/string_index.hpp>
#include <pmlab/strings/values.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::pibench {
namespace {

// `Words`: one of erased::with_attached. `Values`: strings::word_values, for values of 8 bytes, or
// strings::blob_values.
template <class Words, class Values>
class tree_of_strings final : public tree_api {
  using index_type = strings::string_index<erased::attached_medium, Words, Values>;

 public:
  tree_of_strings(std::string_view name, const tree_options_t& options, std::unique_ptr<words_behind> words)
      : name_(name),
        key_size_(options.key_size),
        value_size_(options.value_size),
        words_(std::move(words)),
        medium_(words_->medium()),
        index_(open_over(*words_, medium_)) {}

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

  // The records are valid for this thread until its next scan. An unordered index returns none, and prints that once.
  int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) override {
    values_out = nullptr;
    if constexpr (indexes::ordered_index<Words>) {
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
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);

  [[nodiscard]] static index_type open_over(words_behind& words, erased::attached_medium& medium) {
    // Beside the root of tree_of_words.hpp in the pool.
    const std::string root = std::string(words.layout_name()) + "_s";
    return index_type::open(medium, root, [&] { return Words::open(words.open(root)); });
  }

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
  std::unique_ptr<words_behind> words_;
  erased::attached_medium medium_;
  index_type index_;
  std::atomic<bool> said_{false};
};

template <class Values>
std::unique_ptr<tree_api> make(std::string_view name, const tree_options_t& options,
                               std::unique_ptr<words_behind> words) {
  return erased::with_attached(words->string_form(), [&]<class Words>(std::type_identity<Words>) {
    return std::unique_ptr<tree_api>(std::make_unique<tree_of_strings<Words, Values>>(name, options, std::move(words)));
  });
}

}  // namespace

void check_sizes(const tree_options_t& options) {
  if (options.key_size == 0 || options.key_size > strings::most_key_bytes)
    throw error("there are no keys of " + std::to_string(options.key_size) + " bytes",
                "give --key_size 1 to " + std::to_string(strings::most_key_bytes));
  if (options.value_size > strings::blob_values::most_bytes)
    throw error("there are no values of " + std::to_string(options.value_size) + " bytes",
                "give --value_size 0 to " + std::to_string(strings::blob_values::most_bytes));
}

std::unique_ptr<tree_api> make_tree_of_strings(std::string_view name, const tree_options_t& options,
                                               std::unique_ptr<words_behind> words) {
  return options.value_size == sizeof(std::uint64_t) ? make<strings::word_values>(name, options, std::move(words))
                                                     : make<strings::blob_values>(name, options, std::move(words));
}

}  // namespace pmlab::pibench
