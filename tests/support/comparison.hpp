// Compares an index with a model of its content. All functions return "" or the difference, as text.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/operations.hpp"

namespace pmlab::tests {

// `got` is sorted by key.
[[nodiscard]] inline std::string difference(const std::vector<indexes::entry>& got, const contents& model,
                                            const std::string& how) {
  auto wanted = model.begin();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (i > 0 && got[i].key == got[i - 1].key) return how + " returns key " + std::to_string(got[i].key) + " twice";
    if (wanted == model.end() || got[i].key < wanted->first)
      return how + " returns key " + std::to_string(got[i].key) + ", which must be absent";
    if (got[i].key > wanted->first) return how + " misses key " + std::to_string(wanted->first);
    if (got[i].value != wanted->second)
      return how + " returns key " + std::to_string(got[i].key) + " the value " + std::to_string(got[i].value) +
             ", not " + std::to_string(wanted->second);
    ++wanted;
  }
  return wanted == model.end() ? "" : how + " misses key " + std::to_string(wanted->first);
}

// A scan of up to `length` entries from `from`.
template <indexes::ordered_index Index>
std::string compare_scan(Index& index, const contents& model, std::uint64_t from, std::size_t length) {
  const std::string how = "scan(" + std::to_string(from) + ", " + std::to_string(length) + ")";
  std::vector<indexes::entry> got(length + 1, indexes::entry{17, 17});
  const std::size_t count = index.scan(from, std::span(got.data(), length));
  if (count > length) return how + " says " + std::to_string(count);
  if (got[length] != indexes::entry{17, 17}) return how + " writes past the end of its output";
  contents wanted;
  for (auto at = model.lower_bound(from); at != model.end() && wanted.size() < length; ++at) wanted.insert(*at);
  got.resize(count);
  for (std::size_t i = 1; i < count; ++i)
    if (got[i].key <= got[i - 1].key) return how + " is not ascending at key " + std::to_string(got[i].key);
  return difference(got, wanted, how);
}

template <indexes::ordered_index Index>
std::string compare_range(Index& index, const contents& model, std::uint64_t first, std::uint64_t last) {
  const std::string how = "for_each_in(" + std::to_string(first) + ", " + std::to_string(last) + ")";
  std::vector<indexes::entry> got;
  index.for_each_in(first, last, [&](std::uint64_t key, std::uint64_t value) { got.push_back({key, value}); });
  for (std::size_t i = 1; i < got.size(); ++i)
    if (got[i].key <= got[i - 1].key) return how + " is not ascending at key " + std::to_string(got[i].key);
  contents wanted;
  for (auto at = model.lower_bound(first); at != model.end() && at->first <= last; ++at) wanted.insert(*at);
  return difference(got, wanted, how);
}

// Every way of reading the whole index, and its own check.
template <indexes::point_index Index>
std::string compare_all(Index& index, const contents& model) {
  const indexes::check_report report = index.check();
  if (!report.ok()) return "check(): " + report.violations.front();
  if (report.entries != model.size())
    return "check() counts " + std::to_string(report.entries) + " entries, not " + std::to_string(model.size());
  if (index.size() != model.size())
    return "size() returns " + std::to_string(index.size()) + ", not " + std::to_string(model.size());
  if (std::string wrong = difference(entries_of(index), model, "for_each"); !wrong.empty()) return wrong;
  for (const auto& [key, value] : model)
    if (const auto found = index.find(key); found != value)
      return "find(" + std::to_string(key) + ") " + (found ? "gives " + std::to_string(*found) : "misses") + ", not " +
             std::to_string(value);
  if constexpr (indexes::ordered_index<Index>) {
    constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
    if (std::string wrong = compare_scan(index, model, 0, model.size() + 3); !wrong.empty()) return wrong;
    if (std::string wrong = compare_range(index, model, 0, last); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace pmlab::tests
