// All that is left of a damaged store: the newest readable version of each key.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/problem_list.hpp>
#include <pmlab/stores/tiered/cursor.hpp>
#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// A change of a group of the log behind a gap.
struct loose_change {
  change_kind kind;
  std::uint8_t table;
  std::string key;
  std::string value;
  std::uint64_t sequence;
};

// Has all keys in DRAM. Thread safety: none.
template <blocks::device Device>
class salvager {
 public:
  explicit salvager(const std::vector<std::string>& problems) {
    for (const std::string& p : problems) problems_.add(p);
  }

  // The newest version of a key wins.
  void add(found_version v) {
    found_version& known = newest_[{v.table, v.key}];
    if (known.sequence < v.sequence) known = std::move(v);
  }
  void add(const loose_change& c) {
    found_version v{c.table, c.kind, c.key, c.sequence};
    v.value = c.value;
    v.value_bytes = static_cast<std::uint32_t>(c.value.size());
    add(std::move(v));
  }
  // Pages that cannot be read are among the problems of opening already.
  void add(const key_set<Device>& set) {
    for (std::uint32_t p = 0; p < set.described().pages; ++p) {
      try {
        const auto keys = set.read(p).front();
        for (std::size_t i = 0; i < keys->count(); ++i) add(keys->at(i));
      } catch (const error&) {
      }
    }
  }
  // function(name of the table, key, value), in order. Throws pmlab::error at the end if something may be missing or
  // old.
  template <class Function>
  void visit(const set_context<Device>& context, const std::vector<std::string>& tables, Function&& function) {
    for (const auto& [name, v] : newest_) {
      if (v.kind == change_kind::erase) continue;
      const std::string table = v.table < tables.size() ? tables[v.table] : std::string();
      std::string value;
      try {
        value = read_value(context, v);
      } catch (const error& e) {
        problems_.add(e.what());
        continue;
      }
      function(table, v.key, value);
    }
    if (!problems_.is_empty())
      throw error("this tiered store is damaged: " + problems_.text(), "restore it from a copy, if there is one");
  }

 private:
  indexes::detail::problem_list problems_;
  std::map<std::pair<std::uint16_t, std::string>, found_version> newest_;
};

}  // namespace pmlab::stores::detail::tiered
