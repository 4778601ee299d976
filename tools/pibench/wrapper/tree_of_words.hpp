// An index of pmlab with keys and values of 8 bytes, behind PiBench's interface (trees.hpp). Compiled for each index,
// so that PiBench measures no virtual call but its own.
#pragma once

#include "tools/pibench/wrapper/answers.hpp"
#include "tools/pibench/wrapper/message.hpp"
#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::pibench {

static_assert(sizeof(indexes::entry) == 2 * sizeof(std::uint64_t), "a record is a key and a value");

template <class Index>
class tree_of_words final : public tree_api {
 public:
  // `index` is that of `words`.
  tree_of_words(std::string_view name, std::unique_ptr<words_behind> words, Index& index)
      : name_(name), words_(std::move(words)), medium_(words_->medium()), index_(index) {}

  bool find(const char* key, std::size_t key_size, char* value_out) override {
    return saying(name_, [&] {
      const std::optional<std::uint64_t> value = index_.find(word("key", key, key_size));
      if (value) std::memcpy(value_out, &*value, sizeof *value);
      return value.has_value();
    });
  }

  bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
    return saying(name_, [&] {
      return changed(index_.insert(word("key", key, key_size), word("value", value, value_size)), medium_);
    });
  }

  bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) override {
    return saying(name_, [&] {
      return changed(index_.update(word("key", key, key_size), word("value", value, value_size)), medium_);
    });
  }

  bool remove(const char* key, std::size_t key_size) override {
    return saying(name_, [&] { return changed(index_.erase(word("key", key, key_size)), medium_); });
  }

  // The records are valid for this thread until its next scan. An unordered index returns none, and prints that once.
  int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) override {
    values_out = nullptr;
    if constexpr (indexes::ordered_index<Index>) {
      // A cache scans any index; one without an order has nothing to scan.
      if (words_->string_form() != indexes::string_form::hashes)
        return saying(name_, [&] {
          static thread_local std::vector<indexes::entry> records;
          const auto most = static_cast<std::size_t>(std::max(scan_size, 0));
          records.resize(scan_into(records, word("key", key, key_size), most));
          values_out = reinterpret_cast<char*>(records.data());
          return static_cast<int>(records.size());
        });
    }
    if (!said_.exchange(true, std::memory_order_relaxed)) say(name_, no_order);
    return 0;
  }

 private:
  static std::uint64_t word(std::string_view what, const char* bytes, std::size_t size) {
    std::uint64_t value;
    check_size(what, size, sizeof value);
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  // Up to `most` entries from `from` on. A few at a time, since PiBench may request more than there are.
  std::size_t scan_into(std::vector<indexes::entry>& records, std::uint64_t from, std::size_t most) {
    constexpr std::size_t at_a_time = 4096;
    std::size_t found = 0;
    while (found < most) {
      const std::size_t wanted = std::min(most - found, at_a_time);
      if (records.size() < found + wanted) records.resize(found + wanted);
      const std::size_t got = index_.scan(from, std::span(records).subspan(found, wanted));
      found += got;
      if (got < wanted || records[found - 1].key == std::numeric_limits<std::uint64_t>::max()) break;
      from = records[found - 1].key + 1;
    }
    return found;
  }

  std::string name_;
  std::unique_ptr<words_behind> words_;
  erased::any_medium& medium_;
  Index& index_;
  std::atomic<bool> said_{false};
};

}  // namespace pmlab::pibench
