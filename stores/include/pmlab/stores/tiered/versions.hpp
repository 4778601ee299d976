// A version of a key as a search finds it, and the searches that all sources of versions share.
//
// A source stands at one version, or at none:
//   seek(name)    to the first at or after that place in the order of versions; false: there is none
//   step()        to the one behind; false: there is none. REQUIRES: it stands at one.
//   here()        the name of the one where it stands, until the source moves
//   take(into)    stores that version in `into`, which keeps the memory of its strings; the source stays
//   less(name)    the last before a place, as an optional found_version; then the source stands at none
// If one throws, the source stands at none.
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
  [[nodiscard]] bool seek(const version_name& name) noexcept {
    at_ = table_->at_least(name);
    return at_ != nullptr;
  }
  [[nodiscard]] bool step() noexcept {
    at_ = at_->next();
    return at_ != nullptr;
  }
  [[nodiscard]] version_name here() const noexcept { return at_->name(); }
  void take(found_version& into) const { describe(at_, into); }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) const {
    const memtable::node* const n = table_->less(name);
    if (n == nullptr) return std::nullopt;
    return of(n);
  }

  [[nodiscard]] static found_version of(const memtable::node* n) {
    found_version v;
    describe(n, v);
    return v;
  }

 private:
  static void describe(const memtable::node* n, found_version& into) {
    const version_name name = n->name();
    into.key.assign(name.key);
    into.table = name.table;
    into.kind = n->kind();
    into.sequence = name.sequence;
    into.node = n;
    into.place = n->place();
    into.value_bytes = static_cast<std::uint32_t>(n->value().size());
    into.value_check = 0;
    into.value.reset();
  }
  std::shared_ptr<const memtable> table_;
  const memtable::node* at_ = nullptr;
};

// The first version at or after `name`.
template <class Source>
[[nodiscard]] std::optional<found_version> at_least(Source& source, const version_name& name) {
  if (!source.seek(name)) return std::nullopt;
  std::optional<found_version> v(std::in_place);
  source.take(*v);
  return v;
}

// To the newest version, up to `sequence`, of the first key of `table` at or after the place `from` that has one.
// False: there is none.
template <class Source>
[[nodiscard]] bool to_key_from(Source& source, const version_name& from, std::uint16_t table, std::uint64_t sequence) {
  bool any = source.seek(from);
  while (any && source.here().table == table && source.here().sequence > sequence) {
    const std::string at(source.here().key);
    any = source.seek({table, at, sequence});
  }
  return any && source.here().table == table;
}

// The same for the first key behind `at`, the key where the source stands. Steps, unless `at` has many versions or
// others came between: then a search is shorter.
template <class Source>
[[nodiscard]] bool to_key_behind(Source& source, std::string_view at, std::uint16_t table, std::uint64_t sequence) {
  constexpr int most_steps = 8;
  for (int i = 0; i < most_steps; ++i) {
    if (!source.step()) return false;
    const version_name v = source.here();
    if (v.table != table) return false;
    if (v.key != at && v.sequence <= sequence) return true;
  }
  return to_key_from(source, {table, at, 0}, table, sequence);
}

// The newest version, up to `sequence`, of the last key of `table` before the place `to` that has one.
template <class Source>
std::optional<found_version> previous_key(Source& source, const version_name& to, std::uint16_t table,
                                          std::uint64_t sequence) {
  std::optional<found_version> v = source.less(to);
  while (v && v->table == table) {
    const std::string at = v->key;
    // This is the oldest version of its key.
    if (v->sequence <= sequence) return at_least(source, {table, at, sequence});
    v = source.less({table, at, newest});
  }
  return std::nullopt;
}

}  // namespace pmlab::stores::detail::tiered
