// Shared by the parts of a string index.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/blocks.hpp>
#include <pmlab/strings/detail/ledger.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string_view>

namespace pmlab::strings::detail {

// The record's head and its key are about to be read.
template <media::medium Medium>
[[nodiscard]] std::string_view key_of(Medium& medium, const record& r) noexcept {
  media::annotate_read(medium, r);
  const std::string_view key = r.key();
  medium.annotate_read(key.data(), key.size());
  return key;
}

// The named root leads to it.
struct alignas(media::cache_line_bytes) state {
  std::atomic<std::uint64_t> first_page{0};   // first page of the ledger
  std::atomic<std::uint64_t> numbers_end{1};  // layers below this number may exist
  std::atomic<std::uint64_t> tree{0};         // the root of a tree of strings; 0: the index has none
};

// The words' index, and the locks of its words.
template <media::medium Medium, class Index>
struct parts {
  Medium& medium;
  Index& words;
  const sync::version_lock_table& locks;
  state& stored;

  [[nodiscard]] sync::version_lock& lock_of(std::uint64_t word) const noexcept {
    return locks[(word * golden_ratio) >> 32];
  }
  [[nodiscard]] record& record_at(std::uint64_t place) const noexcept {
    return *medium.resolve(media::pointer<record>(place));
  }
  [[nodiscard]] bytes_block& prefix_at(std::uint64_t place) const noexcept {
    return *medium.resolve(media::pointer<bytes_block>(place));
  }
  [[nodiscard]] std::uint64_t place_of(const record& r) const noexcept { return medium.locate(&r).word(); }

  // A change of the words' index. Without memory for it nothing has changed, as without space.
  template <class Change>
  [[nodiscard]] static indexes::outcome change_of_words(Change&& change) {
    try {
      return change();
    } catch (const std::bad_alloc&) {
      return indexes::outcome::full;
    }
  }

  // The record's head and its key are about to be read.
  [[nodiscard]] std::string_view key_of(const record& r) const noexcept { return detail::key_of(medium, r); }
};

// The beginning of a key, as a message shows it.
[[nodiscard]] inline std::string printable(std::string_view key) {
  std::string text;
  for (const char c : key.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
  return "'" + text + "'";
}

// How far two strings are the same.
[[nodiscard]] inline std::size_t same_bytes(std::string_view a, std::string_view b) noexcept {
  const std::size_t shorter = a.size() < b.size() ? a.size() : b.size();
  std::size_t same = 0;
  while (same < shorter && a[same] == b[same]) ++same;
  return same;
}

// Whether a change of the words' index was made.
enum class linked : std::uint8_t {
  yes,
  no,         // no space; the words are as they were
  in_pieces,  // no space, not even to undo the operation: the ledger's item stays, and the next open completes it
};

}  // namespace pmlab::strings::detail
