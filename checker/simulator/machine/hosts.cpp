// Several hosts on one memory.
#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/torn_store.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace pmlab::simulator {
namespace {

constexpr std::uint64_t one_in_takes_a_version_between = 8;
constexpr std::uint64_t one_in_is_loaded_again = 4;
// As in the log of a memory: a word that is written again and again without a flush keeps its last value only.
constexpr std::size_t longest_log = 48;

// Visits (line, first word, end of the words) of a range, in bytes from the start of the memory.
template <class Visit>
void for_each_line_of(std::size_t offset, std::size_t bytes, Visit&& visit) {
  for (std::size_t at = offset; at < offset + bytes;) {
    const std::size_t line = at / media::cache_line_bytes;
    const std::size_t end = std::min(offset + bytes, (line + 1) * media::cache_line_bytes);
    const std::size_t line_start = line * media::cache_line_bytes;
    visit(static_cast<std::uint32_t>(line), at - line_start, end - line_start);
    at = end;
  }
}

// The bytes [first, end) of a line, as a mask of this word.
std::uint64_t mask_of(std::size_t word, std::size_t first, std::size_t end) noexcept {
  std::uint64_t mask = 0;
  for (std::size_t byte = 0; byte < sizeof mask; ++byte)
    if (const std::size_t at = word * sizeof mask + byte; at >= first && at < end)
      mask |= std::uint64_t{0xff} << (byte * 8);
  return mask;
}

}  // namespace

hosts::hosts(persistent_memory& memory, const host_options& options)
    : memory_(memory),
      options_(options),
      places_(memory.bytes() / media::cache_line_bytes * sizeof(std::uint32_t)),
      holders_(memory.bytes() / media::cache_line_bytes),
      last_loads_(memory.bytes() / media::cache_line_bytes * options.hosts * sizeof(std::uint32_t)),
      random_(options.seed) {
  constexpr std::uint64_t newest[] = {1, 4, 64, 0};
  constexpr std::uint64_t write_backs[] = {2, 8, 64, 512, 0};
  one_in_takes_newest_ = newest[below(std::size(newest))];
  one_in_writes_back_ = write_backs[below(std::size(write_backs))];
}

std::uint64_t hosts::below(std::uint64_t bound) noexcept { return mix_bits(random_ += golden_ratio) % bound; }

void hosts::show(unsigned host) {
  if (std::exchange(shown_, host) == host) return;
  if (!std::exchange(has_run_[host], true))
    for (shared_line& l : lines_) changes_copy(l);
  std::erase_if(uneven_, [&](std::uint32_t place) {
    shared_line& l = lines_[place];
    std::memcpy(memory_words(l.number), l.copies[host].words.data(), media::cache_line_bytes);
    l.is_uneven = false;
    for (unsigned h = 0; h < options_.hosts && !l.is_uneven; ++h)
      l.is_uneven = has_run_[h] && !is_dead(h) && l.copies[h].words != l.copies[host].words;
    return !l.is_uneven;
  });
}

void hosts::changes_copy(shared_line& line) {
  if (!std::exchange(line.is_uneven, true)) uneven_.push_back(place_of(line.number) - 1);
}

void hosts::start_host(unsigned host) {
  for (shared_line& l : lines_) take(l, host, l.versions.newest().number);
}

hosts::shared_line& hosts::open(std::uint32_t line) {
  if (shared_line* const known = find(line); known != nullptr) return *known;
  lines_.emplace_back();
  place_of(line) = static_cast<std::uint32_t>(lines_.size());
  shared_line& l = lines_.back();
  l.number = line;
  const line_words words = durable_words(line);
  l.versions.begin(words);
  l.copies.resize(options_.hosts);
  for (host_copy& c : l.copies) c.base = c.words = words;
  return l;
}

// ---- loads ----

void hosts::before_access(std::uintptr_t address, std::size_t bytes, const void* caller,
                          const invalidation_list& unordered) {
  for_each_line_of(address - start(), bytes, [&](std::uint32_t line, std::size_t, std::size_t) {
    if (is_coherent(start() + std::size_t{line} * media::cache_line_bytes))
      take_from_holder(line);
    else
      load_line(line, caller, unordered);
  });
}

// The device passes dirty data on: they are in it from then on.
void hosts::take_from_holder(std::uint32_t line) {
  if (memory_.log_of(line) == nullptr || holder_of(line) == shown_ + 1) return;
  flush_list all;
  memory_.flushed(start() + std::size_t{line} * media::cache_line_bytes, all);
  memory_.fenced(all);
}

void hosts::load_line(std::uint32_t line, const void* caller, const invalidation_list& unordered) {
  const bool is_fresh = has_dropped(line);
  loads(line);
  shared_line* const l = find(line);
  if (l == nullptr) return;
  host_copy& c = l->copies[shown_];
  if (!c.is_clean()) return;
  const std::uint64_t newest = l->versions.newest().number;
  if (c.seen != newest) {
    if (is_fresh || happens(one_in_takes_newest_))
      take(*l, shown_, newest);
    else if (happens(one_in_takes_a_version_between))
      take(*l, shown_, c.seen + below(newest - c.seen));
  }
  note_miss(*l, caller, unordered);
  counts_.stale_loads += c.seen < newest ? 1 : 0;
}

// Behind the last miss that may be, others write their copies back before the load, which takes the newest version.
// REQUIRES: the shown host's copy is clean.
void hosts::note_miss(shared_line& line, const void* caller, const invalidation_list& unordered) {
  const host_copy& c = line.copies[shown_];
  const std::uint64_t newest = line.versions.newest().number;
  const auto dirty = std::find_if(line.copies.begin(), line.copies.end(),
                                  [&](const host_copy& other) { return &other != &c && !other.is_clean(); });
  const bool stale = c.seen < newest;
  if (!stale && dirty == line.copies.end()) return;
  if (counts_.misses >= options_.most_misses) {
    for (unsigned h = 0; h < options_.hosts; ++h) {
      if (h == shown_) continue;
      arrive(line, h);
      write_back(line, h, line.copies[h].stores.size());
    }
    return take(line, shown_, line.versions.newest().number);
  }
  ++counts_.misses;
  last_miss_ = {.line = line.number, .host = shown_, .caller = caller, .seen = c.seen, .newest = newest};
  last_miss_.invalidated =
      std::any_of(unordered.begin(), unordered.end(), [&](const auto& i) { return i.number == line.number; });
  if (stale) {
    const device_version& next = line.versions.at(c.seen + 1);
    last_miss_.by = next.host;
    last_miss_.store = next.caller;
    return;
  }
  last_miss_.by = static_cast<unsigned>(dirty - line.copies.begin());
  last_miss_.in_cache = true;
  last_miss_.flushed = dirty->last_flush > dirty->dropped || !dirty->around.empty();
  last_miss_.store = dirty->stores.empty() ? dirty->around.back().caller : dirty->stores.back().caller;
}

std::string hosts::story() const {
  std::string text;
  for (const host_death& d : deaths_) {
    text += "\n  death: host " + std::to_string(d.host) + " died " +
            (d.caller == nullptr ? "behind its last access" : "before its access at " + code_address(d.caller));
    for (const lost_stores& l : d.lost)
      text += "\n    lost: " + std::to_string(l.count) + " store(s) to the line at offset " +
              std::to_string(std::size_t{l.line} * media::cache_line_bytes) + ", first the one at " +
              code_address(l.first);
  }
  return text + story_of_miss();
}

std::string hosts::story_of_miss() const {
  if (counts_.misses == 0) return "\n  every load has seen the newest store: so it fails on one coherent memory, too";
  const missed_store& m = last_miss_;
  const std::string host = "host " + std::to_string(m.host);
  std::string text = "\n  stale: " + host + " loads the line at offset " +
                     std::to_string(std::size_t{m.line} * media::cache_line_bytes) + " at " + code_address(m.caller) +
                     "\n    without host " + std::to_string(m.by) + "'s store at " + code_address(m.store);
  if (m.in_cache) {
    text +=
        m.flushed ? ", which is flushed, and not fenced yet" : ", which is in the cache of its host alone: not flushed";
    return text;
  }
  text += ", which is on the device\n    " + host + " took version " + std::to_string(m.seen) + " of " +
          std::to_string(m.newest);
  return text + (m.invalidated ? ": it has invalidated the line since, but no mfence or locked instruction followed"
                               : ", and has not invalidated the line since");
}

// REQUIRES: the copy is clean.
void hosts::take(shared_line& line, unsigned host, std::uint64_t version) {
  host_copy& c = line.copies[host];
  if (c.seen == version) return;
  c.seen = version;
  c.base = c.words = line.versions.at(version).words;
  changes_copy(line);
  if (host == shown_) std::memcpy(memory_words(line.number), c.words.data(), media::cache_line_bytes);
}

bool hosts::is_known(std::uintptr_t address, std::size_t bytes) const noexcept {
  bool known = true;
  for_each_line_of(address - start(), bytes, [&](std::uint32_t line, std::size_t first, std::size_t end) {
    const std::uintptr_t at = start() + std::size_t{line} * media::cache_line_bytes;
    const shared_line* const l = find(line);
    if (l == nullptr)
      known = known && memory_.is_known(at + first, end - first);
    else
      known = known && std::memcmp(reinterpret_cast<const std::byte*>(l->copies[shown_].words.data()) + first,
                                   reinterpret_cast<const std::byte*>(at + first), end - first) == 0;
  });
  return known;
}

// ---- stores ----

line_words hosts::durable_words(std::uint32_t line) const noexcept {
  line_words words;
  std::memcpy(words.data(), memory_.durable() + std::size_t{line} * media::cache_line_bytes, sizeof words);
  return words;
}

void hosts::tell_of_store(std::uint32_t line) {
  if (memory_.observer() != nullptr && !memory_.is_reserved(line)) memory_.observer()->after_cached_store(line, shown_);
}

// It may have waited in a store buffer while other hosts stored to the line.
void hosts::store_coherently(std::uint32_t line, std::uintptr_t address, std::size_t bytes, const void* caller) {
  take_from_holder(line);
  holder_of(line) = static_cast<std::uint8_t>(shown_ + 1);
  memory_.stored(address, bytes, caller);
}

void hosts::stored(std::uintptr_t address, std::size_t bytes, const void* caller) {
  memory_.use_up_to((std::size_t{line_of(address + bytes - 1)} + 1) * media::cache_line_bytes);
  for_each_line_of(address - start(), bytes, [&](std::uint32_t line, std::size_t first, std::size_t end) {
    const std::uintptr_t at = start() + std::size_t{line} * media::cache_line_bytes;
    if (is_coherent(at)) return store_coherently(line, at + first, end - first, caller);
    shared_line& l = open(line);
    host_copy& c = l.copies[shown_];
    line_words now;  // `arrive` may change memory
    std::memcpy(now.data(), memory_words(line), sizeof now);
    // It may have waited in a store buffer, while another thread of the host invalidated the line.
    if (c.is_clean() && has_dropped(line)) take(l, shown_, l.versions.newest().number);
    if (c.is_clean()) note_miss(l, caller, {});
    loads(line);
    if (!c.around.empty()) arrive(l, shown_);
    const std::size_t last_word = (end - 1) / sizeof(std::uint64_t);
    changes_copy(l);
    dirty_.insert(place_of(line) - 1);
    for_each_torn_word(first / sizeof(std::uint64_t), last_word, tears_, [&](std::size_t word) {
      const std::uint64_t mask = mask_of(word, first, end);
      // Also the value that is there: the copy is dirty.
      c.words[word] = (c.words[word] & ~mask) | (now[word] & mask);
      memory_words(line)[word] = c.words[word];
      const logged_store s{c.words[word], caller, static_cast<std::uint32_t>(word)};
      const bool hot =
          c.stores.size() >= longest_log && c.stores.back().word == word && c.last_flush < c.dropped + c.stores.size();
      if (hot)
        c.stores.back() = s;
      else
        c.stores.push_back(s);
      tell_of_store(line);
    });
  });
}

void hosts::stored_around(std::uintptr_t address, std::size_t bytes, flush_list& by, const void* caller) {
  memory_.use_up_to((std::size_t{line_of(address + bytes - 1)} + 1) * media::cache_line_bytes);
  for_each_line_of(address - start(), bytes, [&](std::uint32_t line, std::size_t first, std::size_t end) {
    const std::uintptr_t at = start() + std::size_t{line} * media::cache_line_bytes;
    if (is_coherent(at)) {
      store_coherently(line, at + first, end - first, caller);
      memory_.flushed(at, by);
      return;
    }
    shared_line& l = open(line);
    host_copy& c = l.copies[shown_];
    // The caches give the line up before.
    write_back(l, shown_, c.stores.size());
    drops(line);
    changes_copy(l);
    for (std::size_t word = first / sizeof(std::uint64_t); word * sizeof(std::uint64_t) < end; ++word) {
      c.words[word] = memory_words(line)[word];
      c.around.push_back({static_cast<std::uint32_t>(word), mask_of(word, first, end), c.words[word], caller});
      tell_of_store(line);
    }
    by.push_back({line, c.dropped});
    if (leaves_by_chance(2)) arrive(l, shown_);
  });
}

// Non-temporal stores reach the device: their own bytes, and no others. The host has dropped its copy.
void hosts::arrive(shared_line& line, unsigned host) {
  host_copy& c = line.copies[host];
  if (c.around.empty()) return;
  line_words words = line.versions.newest().words;
  for (const around_store& s : c.around) words[s.word] = (words[s.word] & ~s.mask) | (s.value & s.mask);
  const void* const caller = c.around.back().caller;
  c.around.clear();
  add_version(line, words, host, caller);
  if (c.stores.empty()) take(line, host, line.versions.newest().number);
}

// ---- write-backs ----

void hosts::flushed(std::uintptr_t address, flush_list& by) {
  if (is_coherent(address)) return memory_.flushed(address, by);
  const std::uint32_t line = line_of(address);
  shared_line* const l = find(line);
  if (l == nullptr) return;
  host_copy& c = l->copies[shown_];
  c.last_flush = c.dropped + static_cast<std::uint32_t>(c.stores.size());
  by.push_back({line, c.last_flush});
}

void hosts::fenced(flush_list& by) {
  std::erase_if(by, [&](const flushed_line& f) {
    if (is_coherent(start() + std::size_t{f.line} * media::cache_line_bytes)) return false;
    shared_line& l = *find(f.line);
    host_copy& c = l.copies[shown_];
    arrive(l, shown_);
    // Later stores may be in the line by the time it goes.
    if (f.stores > c.dropped) write_back(l, shown_, leaves_by_chance(2) ? c.stores.size() : f.stores - c.dropped);
    return true;
  });
  memory_.fenced(by);
}

line_words hosts::written_back(const host_copy& copy, std::size_t stores) noexcept {
  line_words words = copy.base;
  for (std::size_t i = 0; i < stores; ++i) words[copy.stores[i].word] = copy.stores[i].value;
  return words;
}

bool hosts::is_clobber(const host_copy& copy, std::size_t stores, const line_words& newest) noexcept {
  std::array<bool, words_per_line> own{};
  for (std::size_t i = 0; i < stores; ++i) own[copy.stores[i].word] = true;
  for (std::size_t w = 0; w < words_per_line; ++w)
    if (!own[w] && copy.base[w] != newest[w]) return true;
  return false;
}

// The first `stores` stores of a dirty copy go to the device, and with them the rest of its 64 bytes.
void hosts::write_back(shared_line& line, unsigned host, std::size_t stores) {
  host_copy& c = line.copies[host];
  const std::size_t count = std::min(stores, c.stores.size());
  if (count == 0) return;
  const line_words words = written_back(c, count);
  const void* const caller = c.stores[count - 1].caller;
  ++counts_.write_backs;
  counts_.clobbers += is_clobber(c, count, line.versions.newest().words) ? 1 : 0;
  c.stores.erase(c.stores.begin(), c.stores.begin() + static_cast<std::ptrdiff_t>(count));
  c.dropped += static_cast<std::uint32_t>(count);
  // What the host sees stays the same: its words are the base and the stores that are left.
  c.base = words;
  c.seen = line.versions.newest().number + 1;
  add_version(line, words, host, caller);
}

void hosts::add_version(shared_line& line, const line_words& words, unsigned host, const void* caller) {
  line.versions.add(words, host, caller);
  memory_.write_line(line.number, words);
  const std::uint64_t oldest = line.versions.oldest_allowed();
  std::uint64_t reachable = line.versions.newest().number;
  for (unsigned h = 0; h < options_.hosts; ++h) {
    host_copy& c = line.copies[h];
    // It has its base itself, and its next version is its own. The dead see nothing.
    if (!c.is_clean() || is_dead(h)) continue;
    if (c.seen < oldest) {
      take(line, h, oldest);
      ++counts_.forced;
    }
    reachable = std::min(reachable, c.seen);
  }
  line.versions.drop_before(reachable);
}

// Each line that is passed takes a number of the generator, whether it is dirty or not.
void hosts::turn_ends() {
  if (lines_.empty() || !leaves_by_chance(one_in_writes_back_)) return;
  const std::size_t from = below(lines_.size());
  while (!dirty_.empty()) {
    auto next = dirty_.lower_bound(static_cast<std::uint32_t>(from));
    if (next == dirty_.end()) next = dirty_.begin();
    const std::size_t away = (*next + lines_.size() - from) % lines_.size();
    shared_line& l = lines_[*next];
    if (std::all_of(l.copies.begin(), l.copies.end(), [](const host_copy& c) { return c.stores.empty(); })) {
      dirty_.erase(next);
      continue;
    }
    random_ += away * golden_ratio;
    const auto first = static_cast<unsigned>(below(options_.hosts));
    for (unsigned n = 0; n < options_.hosts; ++n) {
      const unsigned host = (first + n) % options_.hosts;
      if (l.copies[host].stores.empty()) continue;
      write_back(l, host, l.copies[host].stores.size());
      return;
    }
  }
  random_ += lines_.size() * golden_ratio;
}

// ---- invalidations, and stores around the caches ----

void hosts::invalidates(std::uintptr_t address, invalidation_list& lines) {
  if (is_coherent(address)) return;
  const shared_line* const l = find(line_of(address));
  lines.push_back({line_of(address), loads_, l == nullptr ? 0 : l->versions.newest().number});
}

void hosts::invalidated(invalidation_list& lines) {
  for (const auto& [line, loads_before, version] : lines) {
    const bool was_loaded = options_.stale == stale_lines::loaded && last_load_of(line) > loads_before;
    if (!was_loaded) drops(line);
    shared_line* const l = find(line);
    // A copy that is dirty again was loaded by its stores, behind the invalidation.
    if (l == nullptr || !l->copies[shown_].is_clean()) continue;
    const std::uint64_t newest = l->versions.newest().number;
    const std::uint64_t seen = l->copies[shown_].seen;
    if (was_loaded) {
      // Nothing orders the two. A load that came behind the invalidation took the version of that moment or a newer
      // one, and the line is still there. One that took an older version came before.
      if (seen >= version && happens(one_in_is_loaded_again)) continue;
      drops(line);
    }
    const std::uint64_t least = std::max(version, seen);
    const bool again = options_.stale == stale_lines::any && least < newest && happens(one_in_is_loaded_again);
    take(*l, shown_, again ? least + below(newest - least) : newest);
  }
  lines.clear();
}

void hosts::before_publication(std::uintptr_t address) {
  if (is_coherent(address)) return;
  shared_line& l = open(line_of(address));
  arrive(l, shown_);
  write_back(l, shown_, l.copies[shown_].stores.size());
  drops(l.number);
}

void hosts::after_publication(std::uintptr_t address, const void* caller) {
  if (is_coherent(address)) return;
  shared_line& l = open(line_of(address));
  const line_words words = durable_words(l.number);
  if (words == l.versions.newest().words) return;
  add_version(l, words, shown_, caller);
  take(l, shown_, l.versions.newest().number);
}

std::string hosts::device_compare_exchange(std::uint64_t* word, std::uint64_t& expected, std::uint64_t desired,
                                           const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(word);
  const std::uint32_t line = line_of(address);
  if (address % sizeof *word != 0)
    return "a compare-exchange by the device of 8 bytes that begin at no multiple of 8, which no device does";
  if (is_coherent(address)) {
    take_from_holder(line);
    if (*word != expected) {
      expected = *word;
      return {};
    }
    *word = desired;
    flush_list by;
    stored_around(address, sizeof *word, by, caller);
    memory_.fenced(by);
    return {};
  }
  shared_line& l = open(line);
  host_copy& c = l.copies[shown_];
  if (!c.is_clean())
    return "a compare-exchange by the device on a line that host " + std::to_string(shown_) +
           " has stored to and not written back";
  const auto index = static_cast<std::size_t>(word - memory_words(line));
  line_words words = l.versions.newest().words;
  const std::uint64_t old = words[index];
  if (old == std::exchange(expected, old)) {
    words[index] = desired;
    memory_.use_up_to((std::size_t{line} + 1) * media::cache_line_bytes);
    add_version(l, words, shown_, caller);
  }
  return {};
}

// ---- deaths ----

bool hosts::dies_before(shared_event what) noexcept {
  ++events_;
  ++events_of_[shown_];
  doomed& d = dooms_[shown_];
  if (d.number == 0) return false;
  const bool is_publication = what == shared_event::publication || what == shared_event::growth;
  switch (d.when) {
    case death_moment::before_event: return --d.number == 0;
    case death_moment::before_publication:
      return (what == shared_event::write_back || is_publication) && --d.number == 0;
    case death_moment::behind_publication:
      if (is_publication) d.when = death_moment::before_event;
      return false;
    case death_moment::behind_growth:
      if (what == shared_event::growth) d.when = death_moment::before_event;
      return false;
    case death_moment::behind_lock_word:
      if (what == shared_event::lock_word && --d.number == 0) d = {death_moment::before_event, 1};
      return false;
    case death_moment::behind_news: return false;  // seems_alive
  }
  return false;
}

bool hosts::seems_alive(unsigned host) noexcept {
  ++events_;
  if (host >= most_hosts) return true;  // there is none of that number, so none has died
  if (!is_dead(host) || events_ < known_dead_at_[host][shown_]) return true;
  if (doomed& d = dooms_[shown_]; d.when == death_moment::behind_news) d.when = death_moment::before_event;
  return false;
}

void hosts::begin_deaths() noexcept {
  events_of_.fill(0);
  if (options_.death && options_.death->access != 0)
    doom(options_.death->host, death_moment::before_event, options_.death->access);
}

std::vector<std::uint32_t> hosts::dirty_coherent_lines() const {
  std::vector<std::uint32_t> dirty;
  for (const std::uint32_t id : memory_.unpersisted())
    if (holder_of(memory_.log(id).number) == shown_ + 1) dirty.push_back(memory_.log(id).number);
  return dirty;
}

// Each dirty line has as many choices as stores, and one more; each non-temporal store has two.
void hosts::count_choices() noexcept {
  if (!options_.death) return;
  constexpr std::uint64_t enough = std::uint64_t{1} << 32;
  choices_ = 1;
  const auto add = [&](std::uint64_t choices) { choices_ = std::min(choices_ * choices, enough); };
  for (const shared_line& l : lines_) {
    add(l.copies[shown_].stores.size() + 1);
    for (std::size_t i = 0; i < l.copies[shown_].around.size(); ++i) add(2);
  }
  for (const std::uint32_t line : dirty_coherent_lines()) add(memory_.log_of(line)->stores.size() + 1);
  choice_ = options_.death->choice;
  sampled_ = mix_bits(mix_bits(options_.seed ^ options_.death->access) ^ choice_);
}

// Where they are too many, the first choice is none of all lines, the last one all of them, and those between are drawn
// for each line. REQUIRES: a death of the options.
std::size_t hosts::choose(std::size_t choices) noexcept {
  if (choices_ > one_death::most_choices) {
    if (options_.death->choice == 0) return 0;
    if (options_.death->choice + 1 == one_death::most_choices) return choices - 1;
    const std::uint64_t drawn = mix_bits(sampled_ += golden_ratio);
    constexpr std::uint64_t kinds = 3;  // none, all, any number
    if (drawn % kinds == 0) return 0;
    return drawn % kinds == 1 ? choices - 1 : drawn / kinds % choices;
  }
  const std::size_t chosen = choice_ % choices;
  choice_ /= choices;
  return chosen;
}

// None, all, or any number of them.
std::size_t hosts::stores_that_arrive(std::size_t count) noexcept {
  if (options_.death) return choose(count + 1);
  switch (below(3)) {
    case 0: return 0;
    case 1: return count;
    default: return below(count + 1);
  }
}

void hosts::die(const void* caller) {
  constexpr std::uint64_t delays[] = {1, 30, 1000};
  for (std::uint64_t& known : known_dead_at_[shown_]) known = events_ + 1 + below(delays[below(std::size(delays))]);
  dooms_[shown_] = {};
  count_choices();
  host_death death{.host = shown_, .caller = caller, .lost = {}};
  // A power failure in the middle of it leaves nothing else than one before it.
  persistence_observer* const observer = memory_.observer();
  memory_.observe(nullptr);
  for (shared_line& l : lines_) lose_copy(l, death);
  lose_coherent_stores(death);
  memory_.observe(observer);
  ++counts_.deaths;
  for (const lost_stores& l : death.lost) counts_.lost_stores += l.count;
  deaths_.push_back(std::move(death));
  if (on_death) on_death(shown_);
}

void hosts::lose_copy(shared_line& line, host_death& death) {
  host_copy& c = line.copies[shown_];
  lost_stores lost{.line = line.number};
  // Nothing orders them, not even within a line.
  std::erase_if(c.around, [&](const around_store& s) {
    const bool arrives = options_.death ? choose(2) == 1 : happens(2);
    if (!arrives && lost.count++ == 0) lost.first = s.caller;
    return !arrives;
  });
  if (lost.count != 0) death.lost.push_back(lost);
  arrive(line, shown_);
  write_back(line, shown_, stores_that_arrive(c.stores.size()));
  if (!c.stores.empty()) death.lost.push_back({line.number, c.stores.size(), c.stores.front().caller});
  c.stores.clear();
}

void hosts::lose_coherent_stores(host_death& death) {
  for (const std::uint32_t line : dirty_coherent_lines()) {
    const std::vector<logged_store>& stores = memory_.log_of(line)->stores;
    const std::size_t count = stores.size();
    const std::size_t kept = stores_that_arrive(count);
    if (kept < count) death.lost.push_back({line, count - kept, stores[kept].caller});
    memory_.lose_stores(line, kept);
  }
}

}  // namespace pmlab::simulator
