// A page of keys: versions in their order, under a checksum.
//
//   | checksum | set | number, count | entry, key | entry, key | ... |
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

struct page_header {
  std::uint64_t checksum = 0;  // checksum of the rest of the page
  std::uint64_t set = 0;       // the identity of its set
  std::uint32_t number = 0;
  std::uint32_t count = 0;
};

struct page_entry {
  std::uint64_t sequence = 0;
  value_place place{};
  std::uint32_t value_bytes = 0;
  std::uint32_t value_check = 0;
  std::uint16_t key_bytes = 0;
  std::uint8_t table = 0;
  change_kind kind = change_kind::put;
  std::uint32_t unused = 0;
};
static_assert(sizeof(page_header) == 24 && sizeof(page_entry) == 32);

// The longest key of which a page holds at least two.
[[nodiscard]] constexpr std::size_t most_key_bytes_in(std::size_t page_bytes) noexcept {
  const std::size_t two = (page_bytes - sizeof(page_header)) / 2 - sizeof(page_entry);
  return std::min(two, most_key_bytes);
}

// Fills one page after the other.
class page_builder {
 public:
  page_builder(std::size_t page_bytes, std::uint64_t set) : page_(page_bytes), set_(set) {}

  // False: the page is full.
  [[nodiscard]] bool add(const found_version& v) {
    if (at_ + sizeof(page_entry) + v.key.size() > page_.size()) return false;
    const page_entry e{v.sequence,
                       v.place,
                       v.value_bytes,
                       v.value_check,
                       static_cast<std::uint16_t>(v.key.size()),
                       static_cast<std::uint8_t>(v.table),
                       v.kind,
                       0};
    std::memcpy(page_.data() + at_, &e, sizeof e);
    if (!v.key.empty()) std::memcpy(page_.data() + at_ + sizeof e, v.key.data(), v.key.size());
    at_ += sizeof e + v.key.size();
    ++header_.count;
    return true;
  }
  [[nodiscard]] bool empty() const noexcept { return header_.count == 0; }
  // The page `number` of its set. Valid until the next `add`.
  [[nodiscard]] std::span<const std::byte> seal(std::uint32_t number) {
    std::memset(page_.data() + at_, 0, page_.size() - at_);
    header_.set = set_;
    header_.number = number;
    std::memcpy(page_.data(), &header_, sizeof header_);
    constexpr std::size_t own = sizeof header_.checksum;
    header_.checksum = checksum(page_.data() + own, page_.size() - own, 2);
    std::memcpy(page_.data(), &header_, sizeof header_);
    header_ = {};
    at_ = sizeof header_;
    return page_.bytes();
  }

 private:
  blocks::buffer page_;
  std::uint64_t set_;
  page_header header_{};
  std::size_t at_ = sizeof(page_header);
};

// The page is not the one that was written.
class damaged_page : public error {
 public:
  using error::error;
};

// A page that was read. Throws damaged_page if it is not the one that is named: a damaged page is never used.
class page {
 public:
  page(blocks::buffer bytes, std::uint64_t set, std::uint32_t number) : bytes_(std::move(bytes)) {
    page_header h;
    std::memcpy(&h, bytes_.data(), sizeof h);
    constexpr std::size_t own = sizeof h.checksum;
    bool right =
        is_checksum(h.checksum, bytes_.data() + own, bytes_.size() - own, 2) && h.set == set && h.number == number;
    std::size_t at = sizeof h;
    for (std::uint32_t i = 0; right && i < h.count; ++i) {
      if (bytes_.size() - at < sizeof(page_entry)) {
        right = false;
        break;
      }
      starts_.push_back(static_cast<std::uint32_t>(at));
      page_entry e;
      std::memcpy(&e, bytes_.data() + at, sizeof e);
      at += sizeof e + e.key_bytes;
      right = at <= bytes_.size();
    }
    if (!right || starts_.empty())
      throw damaged_page(
          "page " + std::to_string(number) + " of the keys of set " + std::to_string(set) + " is damaged",
          "check the drive; the store answers nothing from this page");
  }

  [[nodiscard]] std::size_t count() const noexcept { return starts_.size(); }
  [[nodiscard]] version_name name(std::size_t i) const noexcept {
    const page_entry e = entry(i);
    return {e.table, {reinterpret_cast<const char*>(bytes_.data()) + starts_[i] + sizeof e, e.key_bytes}, e.sequence};
  }
  [[nodiscard]] found_version at(std::size_t i) const {
    found_version v;
    take(i, v);
    return v;
  }
  // Stores the same in `into`, which keeps the memory of its key.
  void take(std::size_t i, found_version& into) const {
    const page_entry e = entry(i);
    into.key.assign(name(i).key);
    into.table = e.table;
    into.kind = e.kind;
    into.sequence = e.sequence;
    into.node = nullptr;
    into.place = e.place;
    into.value_bytes = e.value_bytes;
    into.value_check = e.value_check;
    into.value.reset();
  }
  // The number of versions before `name`.
  [[nodiscard]] std::size_t before(const version_name& wanted) const noexcept {
    std::size_t low = 0;
    for (std::size_t high = count(); low < high;) {
      const std::size_t middle = (low + high) / 2;
      if (name(middle) < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

 private:
  [[nodiscard]] page_entry entry(std::size_t i) const noexcept {
    page_entry e;
    std::memcpy(&e, bytes_.data() + starts_[i], sizeof e);
    return e;
  }
  blocks::buffer bytes_;
  std::vector<std::uint32_t> starts_;
};

}  // namespace pmlab::stores::detail::tiered
