// How a hybrid index is written: hybrid(hash=cceh@pmem,tree=fast_fair@dram,update=async,...).
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/quantity.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/hybrid/options.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::hybrid {

// One of the two: an index, and where it is.
struct half {
  std::string index;     // name or specification of an index
  bool in_dram = false;  // or in the medium that the user names
};

// A parsed specification.
struct description {
  half hash;                      // for points
  half tree;                      // for ranges
  primary which = primary::hash;  // which of them is the primary
  options how;                    // all else

  // The half that is the primary.
  [[nodiscard]] const half& durable() const noexcept { return which == primary::hash ? hash : tree; }
  // The other one.
  [[nodiscard]] const half& replica() const noexcept { return which == primary::hash ? tree : hash; }
};

// The two of the paper have names.
struct named_specification {
  std::string_view name;  // as users write it
  std::string_view text;  // the specification that it abbreviates
  std::string_view what;  // one line for a list
};
// hybrid_index and hybrid_index_plus, in this order.
inline constexpr std::array<named_specification, 2> named_specifications = {{
    {"hybrid_index", "hybrid(hash=cceh@pmem,tree=fast_fair@dram,update=async)",
     "hash in PM for points; B+tree in DRAM for ranges, updated in the background"},
    {"hybrid_index_plus", "hybrid(hash=cceh@dram,tree=fast_fair@pmem,update=sync)",
     "B+tree in PM for ranges; hash in DRAM for points, updated at once"},
}};

// The specification that `name` abbreviates; `name` itself if it is none of these.
[[nodiscard]] constexpr std::string_view specification_of(std::string_view name) noexcept {
  for (const named_specification& known : named_specifications)
    if (known.name == name) return known.text;
  return name;
}

// "cceh@dram". Without a place: pmem. Throws pmlab::error: another place, no index.
[[nodiscard]] inline half parse_half(std::string_view text) {
  const std::size_t at = text.rfind('@');
  const bool is_placed = at != std::string_view::npos && text.find(')', at) == std::string_view::npos;
  half result{std::string(text.substr(0, is_placed ? at : text.size())), false};
  const std::string_view place = is_placed ? text.substr(at + 1) : "pmem";
  if (result.index.empty() || (place != "pmem" && place != "dram"))
    throw error(pmlab::detail::in_quotes(text) + " is no half of a hybrid index",
                "write INDEX@pmem (the medium of the run) or INDEX@dram");
  result.in_dram = place == "dram";
  return result;
}

namespace detail {

// Which of `names` the option `key` has; `otherwise`: it is not given.
template <std::size_t Count>
[[nodiscard]] std::size_t choice(const spec& given, std::string_view key,
                                 const std::array<std::string_view, Count>& names, std::size_t otherwise) {
  const auto text = given.option(key);
  if (!text) return otherwise;
  const auto found = std::find(names.begin(), names.end(), *text);
  if (found == names.end())
    throw error(std::string(key) + " cannot be '" + std::string(*text) + "'",
                "did you mean " + nearest(*text, names) + "?");
  return static_cast<std::size_t>(found - names.begin());
}

template <class Number>
void read_count(const spec& given, std::string_view key, std::uint64_t least, std::uint64_t most, Number& value) {
  const auto text = given.option(key);
  if (!text) return;
  const std::uint64_t count = parse_count(*text, std::string(key), least);
  if (count > most)
    throw error(std::string(key) + " '" + std::string(*text) + "' is too large",
                "give at most " + std::to_string(most));
  value = static_cast<Number>(count);
}

}  // namespace detail

// Defaults are those of `hybrid_index`; the half in pmem is the primary, or the hash if both are in the same place.
// Throws pmlab::error: an unknown key or value, the primary in DRAM while the replica is not.
[[nodiscard]] inline description parse_description(const spec& given) {
  constexpr std::array<std::string_view, 13> known = {"hash",     "primary",     "tree",      "truth", "update",
                                                      "updaters", "queues",      "queue",     "batch", "stripes",
                                                      "scan",     "stale_bound", "rebuilders"};
  constexpr std::array<std::string_view, 2> halves = {"hash", "tree"};
  constexpr std::array<spec::synonym, 3> synonyms = {{{"mode", "update"}, {"threads", "updaters"}, {"scans", "scan"}}};
  given.allow(known, synonyms);
  if (!given.arguments.empty())
    throw error(given.name + "() has no use for '" + given.arguments.front() + "'",
                "write hybrid(hash=INDEX@pmem,tree=INDEX@dram)");
  description d;
  d.hash = parse_half(given.option("hash").value_or("cceh@pmem"));
  d.tree = parse_half(given.option("tree").value_or(d.hash.in_dram ? "fast_fair@pmem" : "fast_fair@dram"));
  const std::string_view key_of_primary = given.option("primary") ? "primary" : "truth";  // `truth`: its older name
  const bool tree_alone = d.hash.in_dram && !d.tree.in_dram;
  d.which = static_cast<primary>(detail::choice(given, key_of_primary, halves, tree_alone ? 1 : 0));
  if (d.durable().in_dram && !d.replica().in_dram)
    throw error("the primary of this hybrid index is in DRAM, and its replica in pmem", "leave primary=... out");
  const auto usual = d.which == primary::hash ? update::asynchronous : update::synchronous;
  d.how.how = static_cast<update>(detail::choice(given, "update", update_names, static_cast<std::size_t>(usual)));
  d.how.scan = static_cast<scans>(detail::choice(given, "scan", scan_names, 0));
  constexpr std::uint64_t most_threads = 64;
  constexpr std::uint64_t most_places = std::uint64_t{1} << 19;
  constexpr std::uint64_t most_stripes = std::uint64_t{1} << 24;
  detail::read_count(given, "updaters", 0, most_threads, d.how.updaters);
  detail::read_count(given, "rebuilders", 0, most_threads, d.how.rebuilders);
  detail::read_count(given, "queues", 1, most_threads, d.how.queues);
  detail::read_count(given, "queue", 1, most_places, d.how.queue);
  detail::read_count(given, "batch", 1, most_places, d.how.batch);
  detail::read_count(given, "stale_bound", 0, most_places, d.how.stale_bound);
  detail::read_count(given, "stripes", 2, most_stripes, d.how.stripes);
  d.how.stripes = std::bit_ceil(d.how.stripes);
  return d;
}

}  // namespace pmlab::hybrid
