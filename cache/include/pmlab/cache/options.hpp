// Options of a cache, and their text form: cache(INDEX,mode=...,capacity=...,eviction=...,...).
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/quantity.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/eviction/eviction.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::cache {

// How a key is searched.
enum class mode : std::uint8_t {
  serial,       // the cache, and on a miss the index
  interleaved,  // the index prefetches the line of the search; then the cache, and on a miss the index
  parallel,     // a helper searches the index while the caller searches the cache
  bypass,       // the index alone; the cache stays correct, and gets no new entries
  adaptive,     // one of the others, by their measured times
};
// The names as users write them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 5> mode_names = {"serial", "interleaved", "parallel", "bypass",
                                                               "adaptive"};
// The name as users write it.
[[nodiscard]] constexpr std::string_view to_string(mode m) noexcept { return mode_names[static_cast<std::size_t>(m)]; }

// Which threads put a reader's result into the cache.
enum class filling : std::uint8_t {
  background,  // fillers, from a queue: a miss costs its reader little more than the search
  caller,      // the reader itself: no thread, no queue, no line that moves to another core and back
};
// The names as users write them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 2> filling_names = {"background", "caller"};

// How many entries fit in: a number of them, of bytes of DRAM, or a share of the index's entries.
struct capacity {
  // The unit of `amount`.
  enum class unit : std::uint8_t { entries, bytes, share };
  unit in = unit::entries;  // the unit of `amount`
  double amount = 1 << 16;  // number of these; a share from 0 to 1

  // So many entries.
  [[nodiscard]] static capacity entries(std::uint64_t n) { return {unit::entries, static_cast<double>(n)}; }
  // As many entries as fit into so many bytes of DRAM.
  [[nodiscard]] static capacity bytes(std::uint64_t n) { return {unit::bytes, static_cast<double>(n)}; }
  // A share of the index's entries, from 0 to 1.
  [[nodiscard]] static capacity share(double of_the_index) { return {unit::share, of_the_index}; }

  // `in_index`: entries of the index. More than any memory has room for become 2^60. Throws pmlab::error: the amount is
  // below 0 or no number.
  [[nodiscard]] std::uint64_t in_entries(std::uint64_t in_index) const {
    constexpr double set_bytes = 128;
    constexpr double most = 0x1p60;
    if (!(amount >= 0))
      throw error("a cache cannot have a capacity of " + std::to_string(amount),
                  "give a number of entries or bytes, or a share from 0 to 1");
    switch (in) {
      case unit::entries: break;
      case unit::bytes: return static_cast<std::uint64_t>(std::min(amount / set_bytes, most / ways)) * ways;
      case unit::share: return static_cast<std::uint64_t>(std::min(amount * static_cast<double>(in_index), most));
    }
    return static_cast<std::uint64_t>(std::min(amount, most));
  }
};

// The defaults fit most uses; docs/cache.md has the exceptions.
struct options {
  mode lookup = mode::serial;  // can be changed while the cache is used
  capacity size{};             // fixed when the cache is opened
  // For a share: the entries that the index will have, if more than it has when it is opened.
  std::uint64_t expected_entries = 0;
  // The policy of a cache that chooses it at run time.
  eviction evict = eviction::s3_fifo;
  // Which threads install fills. `fillers`, `queue` and `rest` are of background filling.
  filling fill_by = filling::background;

  // Threads that install fills. 0: none; fills wait until a thread calls `run_fills`.
  unsigned fillers = 1;
  // Fills that may wait for each filler, about; an eighth of them of one calling thread, unless they are few. More are
  // dropped.
  std::size_t queue = 8192;
  // How long a filler rests when there is nothing to do. A queue that fills up in less drops fills. 0: it rests until a
  // reader wakes it, which costs that reader a system call.
  std::chrono::microseconds rest{100};

  // Threads that search the index while their caller searches the cache, one for each caller; callers beyond them
  // search serially. Used in the modes parallel and adaptive.
  unsigned helpers = 0;
  // How often a helper checks for work before it sleeps until it is woken; 0: sleeps at once.
  std::uint64_t helper_spins = 20'000;

  // CPUs that fillers and helpers are bound to, in turn; empty: the kernel chooses.
  std::vector<int> cpus{};

  // Adaptive. One in so many lookups of a thread has its time taken; a power of two.
  std::uint32_t sample_period = 32;
  // So many samples of a shard lead to a decision.
  std::uint32_t window = 128;
  // Parts of the cache that each have a mode of their own.
  unsigned shards = 4;
  // Picoseconds; null: media::fast_clock. A lookup during which it jumps back counts for no mode.
  std::uint64_t (*now)() = nullptr;
};

namespace detail {

template <std::size_t Count>
[[nodiscard]] std::size_t position_of(std::string_view text, const std::array<std::string_view, Count>& names,
                                      const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    throw error("there is no " + what + " '" + std::string(text) + "'", "did you mean " + nearest(text, names) + "?");
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace detail

// "10%": a share of the entries; "64MiB", "1GB": bytes; "100k": entries. Throws pmlab::error.
[[nodiscard]] inline capacity parse_capacity(std::string_view text) {
  const std::string examples = "write it like 10%, 100k (entries) or 64MiB";
  if (text.ends_with('%')) {
    double percent = 0;
    const char* const end = text.data() + text.size() - 1;
    const auto [stopped, failed] = std::from_chars(text.data(), end, percent);
    if (failed != std::errc() || stopped != end || !(percent > 0) || percent > 100)
      throw error("capacity '" + std::string(text) + "' is no share of the index", examples);
    return capacity::share(percent / 100);
  }
  if (text.ends_with('B')) return capacity::bytes(parse_bytes(text, "capacity"));
  return capacity::entries(parse_count(text, "capacity"));
}

// The options of a specification cache(INDEX,KEY=VALUE,...); defaults are 10 % of the index, serial, s3_fifo and one
// filler. Throws pmlab::error: an unknown key or value, no index or more than one, fillers if callers fill.
[[nodiscard]] inline options parse_options(const spec& given) {
  constexpr std::array<std::string_view, 9> known = {"mode",  "capacity", "eviction", "fills", "fillers",
                                                     "queue", "rest_us",  "helpers",  "shards"};
  constexpr std::array<spec::synonym, 9> synonyms = {{{"size", "capacity"},
                                                      {"bytes", "capacity"},
                                                      {"entries", "capacity"},
                                                      {"lookup", "mode"},
                                                      {"policy", "eviction"},
                                                      {"evict", "eviction"},
                                                      {"threads", "fillers"},
                                                      {"filler", "fillers"},
                                                      {"rest", "rest_us"}}};
  given.allow(known, synonyms);
  if (given.arguments.size() != 1)
    throw error(
        given.name + "() is in front of one index, and " + std::to_string(given.arguments.size()) + " are named",
        "write cache(INDEX,mode=...,capacity=...)");
  constexpr std::uint64_t most_threads = 128;
  const auto threads = [&](std::string_view key, unsigned otherwise) {
    const auto text = given.option(key);
    if (!text) return otherwise;
    const std::uint64_t count = parse_count(*text, std::string(key), 0);
    if (count > most_threads) throw error(std::string(key) + " are too many", "give at most 128");
    return static_cast<unsigned>(count);
  };
  options o;
  o.size = parse_capacity(given.option("capacity").value_or("10%"));
  o.lookup = static_cast<mode>(detail::position_of(given.option("mode").value_or("serial"), mode_names, "mode"));
  o.evict = static_cast<eviction>(
      detail::position_of(given.option("eviction").value_or("s3_fifo"), eviction_names, "eviction policy"));
  o.fill_by = static_cast<filling>(
      detail::position_of(given.option("fills").value_or("background"), filling_names, "way to fill a cache"));
  if (o.fill_by == filling::caller)
    for (const std::string_view of_threads : {"fillers", "queue", "rest_us"})
      if (given.option(of_threads))
        throw error(std::string(of_threads) + " has no meaning where callers fill the cache",
                    "leave it, or fills=caller, out");
  o.fillers = threads("fillers", o.fill_by == filling::caller ? 0 : o.fillers);
  o.helpers = threads("helpers", o.lookup == mode::parallel ? 1 : 0);
  o.shards = std::max(threads("shards", o.shards), 1U);
  if (const auto text = given.option("queue")) o.queue = parse_count(*text, "queue");
  if (const auto text = given.option("rest_us")) o.rest = std::chrono::microseconds(parse_count(*text, "rest_us", 0));
  return o;
}

}  // namespace pmlab::cache
