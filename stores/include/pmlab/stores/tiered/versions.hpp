// A version of a key as a search finds it, and the searches that all sources of versions share.
//
// A source has at_least(name), next() and less(name), which return an optional found_version: the first at or after
// that place in the order of versions, the one behind the result of the last at_least or next (REQUIRES: there was
// one), the last before a place.
#pragma once

#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/memtable.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::stores::detail::tiered {

struct found_version {
  std::uint16_t table = 0;
  change_kind kind = change_kind::put;
  std::string key{};
  std::uint64_t sequence = 0;
  const memtable::node* node = nullptr;  // in DRAM, or
  value_place place{};                   // where its value is in the log
  std::uint32_t value_bytes = 0;
  std::uint32_t value_check = 0;
  std::optional<std::string> value{};  // a copy, if it is in persistent memory

  [[nodiscard]] version_name name() const noexcept { return {table, key, sequence}; }
  // Bytes of a value that are somewhere.
  [[nodiscard]] bool has_value() const noexcept { return kind == change_kind::put && value_bytes > 0; }
};

// The part of a checksum that is stored with a reference to a value.
inline constexpr std::uint64_t value_seed = 5;
[[nodiscard]] inline std::uint32_t check_of(std::string_view value) noexcept {
  return static_cast<std::uint32_t>(checksum(value.data(), value.size(), value_seed));
}
// As is_checksum: `check` is of `value`.
[[nodiscard]] inline bool is_check_of(std::uint32_t check, std::string_view value) noexcept {
  return check == check_of(value) ||
         check == static_cast<std::uint32_t>(hash_of_bytes(value.data(), value.size(), value_seed));
}

// The versions of a memtable.
class memtable_source {
 public:
  explicit memtable_source(std::shared_ptr<const memtable> table) : table_(std::move(table)) {}
  [[nodiscard]] std::optional<found_version> at_least(const version_name& name) {
    at_ = table_->at_least(name);
    return if_any(at_);
  }
  [[nodiscard]] std::optional<found_version> next() {
    at_ = at_->next();
    return if_any(at_);
  }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) const { return if_any(table_->less(name)); }

  [[nodiscard]] static found_version of(const memtable::node* n) {
    const version_name name = n->name();
    return {name.table,
            n->kind(),
            std::string(name.key),
            name.sequence,
            n,
            n->place(),
            static_cast<std::uint32_t>(n->value().size()),
            0};
  }

 private:
  [[nodiscard]] static std::optional<found_version> if_any(const memtable::node* n) {
    if (n == nullptr) return std::nullopt;
    return of(n);
  }
  std::shared_ptr<const memtable> table_;
  const memtable::node* at_ = nullptr;
};

// The newest version, up to `sequence`, of the first key of `table` at or after the place `from` that has one.
template <class Source>
std::optional<found_version> next_key(Source& source, const version_name& from, std::uint16_t table,
                                      std::uint64_t sequence) {
  std::optional<found_version> v = source.at_least(from);
  while (v && v->table == table && v->sequence > sequence) {
    const std::string at = v->key;
    v = source.at_least({table, at, sequence});
  }
  if (v && v->table != table) v.reset();
  return v;
}

// The same for the first key behind `at`, the key of the source's last result. Steps, unless `at` has many versions or
// others came between: then a search is shorter.
template <class Source>
std::optional<found_version> key_behind(Source& source, const std::string& at, std::uint16_t table,
                                        std::uint64_t sequence) {
  constexpr int most_steps = 8;
  for (int i = 0; i < most_steps; ++i) {
    std::optional<found_version> v = source.next();
    if (!v || v->table != table) return std::nullopt;
    if (v->key != at && v->sequence <= sequence) return v;
  }
  return next_key(source, {table, at, 0}, table, sequence);
}

// The newest version, up to `sequence`, of the last key of `table` before the place `to` that has one.
template <class Source>
std::optional<found_version> previous_key(Source& source, const version_name& to, std::uint16_t table,
                                          std::uint64_t sequence) {
  std::optional<found_version> v = source.less(to);
  while (v && v->table == table) {
    const std::string at = v->key;
    // This is the oldest version of its key.
    if (v->sequence <= sequence) return source.at_least({table, at, sequence});
    v = source.less({table, at, newest});
  }
  return std::nullopt;
}

}  // namespace pmlab::stores::detail::tiered
