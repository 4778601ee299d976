// Several hosts on one memory: a device that all of them load from and store to, through caches that may not be
// coherent. Inside a host everything is as on a machine of its own.
//
//   device     the durable content of the memory; of a line that hosts see differently, also its latest versions
//   copy       what one host sees of such a line: a version of the device, and above it the stores that the host has
//              not written back
//   memory     holds the copies of the host that runs; a turn to another host puts that one's copies there
//
// A load takes the copy's version or a newer one, never an older one. A store makes the copy dirty: from then on it
// takes no newer version. A dirty copy is written back when the host flushes it and fences, or at any time before; that
// writes all 64 bytes, so bytes that the host never stored to go back to the version that it had taken. An invalidation
// (clflush, clflushopt) makes later loads take the newest version only behind a later mfence or locked instruction.
//
// A line of coherent memory has one content. Its stores are logged by the memory itself, as those of a single host, and
// reach the device when another host touches the line.
//
// A host dies before one of its accesses to the memory: of each of its dirty lines, independently of the others, the
// device gets the first stores and never the rest. The others learn of it some time later, and never falsely.
//
// A power failure of all hosts at once leaves what so many deaths would leave (power_failure.cpp).
#pragma once

#include "checker/simulator/coherence.hpp"
#include "checker/simulator/machine/line_versions.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace pmlab::simulator {

inline constexpr unsigned most_hosts = 9;  // 8, and one that comes when they are done

// Which lines may be stale.
enum class stale_lines : std::uint8_t {
  any,     // a prefetch may have loaded a line that the host never loaded
  loaded,  // only those that the host has loaded since it invalidated them
};

// A death of a replay, or of a search of all of them. Nothing leaves a cache by chance then: what the device gets is
// chosen at the death.
struct one_death {
  static constexpr std::uint64_t most_choices = 64;  // that are tried of one death

  unsigned host = 0;
  std::uint64_t access = 0;  // it dies before so many of its events, from 1; the last one is its end; 0: it does not
  std::uint64_t choice = 0;  // number of what the device gets of its dirty lines, from 0 on
};

struct host_options {
  unsigned hosts = 2;  // at most `most_hosts`
  simulator::coherence coherence = simulator::coherence::full;
  std::size_t coherent_bytes = std::size_t{64} << 10;  // for `partial`: whole lines from the start of the memory
  stale_lines stale = stale_lines::any;
  bool sfence_invalidates = false;   // an sfence orders later loads behind invalidations, which x86 does not promise
  unsigned deaths = 0;               // at most so many hosts die in a run; fewer than there are
  std::optional<one_death> death{};  // in their place
  std::uint64_t seed = 1;
  // So many loads may miss a store of another host; from then on each one is coherent.
  std::uint64_t most_misses = ~std::uint64_t{0};
};

// What a host does to the memory that is shared.
enum class shared_event : std::uint8_t {
  access,       // none of those below
  lock_word,    // a locked instruction, or a compare-exchange by the device
  write_back,   // a line is written back
  publication,  // words change atomically
  growth,       // the same, and a block is allocated with them
  end,          // nothing more: its last thread has ended
};

// When a host dies: at its n-th event from now on, counted from 1.
enum class death_moment : std::uint8_t {
  before_event,
  behind_lock_word,
  before_publication,  // or a write-back
  behind_publication,  // n events behind the next one: as it does what an atomic change has left to do
  behind_growth,       // n events behind the next one that allocates: as it ends a split
  behind_news,  // n events behind the first look by which it knows of another death: as it repairs what that one left
};

// A line that a thread has invalidated, until its next mfence. A load, or a prefetch, may load it again in between.
struct invalidated_line {
  std::uint32_t number;
  std::uint32_t loads;    // the memory's, up to that moment
  std::uint64_t version;  // the newest one at that moment; 0: the line had one only
};
using invalidation_list = std::vector<invalidated_line>;

// What a run met: a run that was never stale has tested nothing.
struct host_counts {
  std::uint64_t stale_loads = 0;  // loads of lines that have a newer version; a store loads its line, too
  std::uint64_t write_backs = 0;
  std::uint64_t clobbers = 0;  // write-backs that put an old word over a newer one of another host
  std::uint64_t forced = 0;    // copies that took a newer version because too many were kept
  std::uint64_t misses = 0;  // loads that missed a store of another host: stale ones, and those of before a write-back
  std::uint64_t deaths = 0;
  std::uint64_t lost_stores = 0;  // stores that deaths lost
  // Counts of a search of every death:
  std::array<std::uint64_t, most_hosts> events{};  // by host, where none dies
  std::uint64_t tried = 0;                         // events before which a host died with each choice
  std::uint64_t divided = 0;                       // those of them that had more choices than were tried
  std::uint64_t differing = 0;                     // rounds that were not as the one before them up to the death
  std::uint64_t choices = 0;                       // the most that a death had

  host_counts& operator+=(const host_counts& other) noexcept {
    stale_loads += other.stale_loads;
    write_backs += other.write_backs;
    clobbers += other.clobbers;
    forced += other.forced;
    misses += other.misses;
    deaths += other.deaths;
    lost_stores += other.lost_stores;
    for (std::size_t h = 0; h < events.size(); ++h) events[h] += other.events[h];
    tried += other.tried;
    divided += other.divided;
    differing += other.differing;
    choices = std::max(choices, other.choices);
    return *this;
  }
};

// A load, or a store's load of its line, that missed a store of another host.
struct missed_store {
  std::uint32_t line = 0;
  unsigned host = 0;             // that loaded
  const void* caller = nullptr;  // place of the load
  std::uint64_t seen = 0;        // the version that it took
  std::uint64_t newest = 0;      // the device's version
  unsigned by = 0;               // host of the first store that it missed
  const void* store = nullptr;   // place of that store
  bool in_cache = false;         // the store is in the cache of its host alone
  bool flushed = false;          // and its write-back waits for a fence
  bool invalidated = false;      // the host has invalidated the line, and no mfence has followed
};

// Stores of a host that died, to one line, which the device never got.
struct lost_stores {
  std::uint32_t line = 0;
  std::size_t count = 0;
  const void* first = nullptr;  // place of the first of them
};
struct host_death {
  unsigned host = 0;
  const void* caller = nullptr;  // place of the access that it died before; nullptr: behind its last one
  std::vector<lost_stores> lost;
};

// Stores of a host to a line that is not coherent, which the device has not got: those of a dirty copy, of which a
// power failure of all hosts keeps the first ones; or a non-temporal store, which it keeps or not.
struct cached_stores {
  std::uint32_t line = 0;
  unsigned host = 0;
  std::uint32_t count = 0;
  bool is_around = false;   // non-temporal
  std::uint32_t place = 0;  // a non-temporal store's, among those of its host to the line
};

// What the hosts of one run see. Thread safety: none; fibers share one kernel thread. Addresses are those of the
// memory.
class hosts {
 public:
  // REQUIRES: 1 <= options.hosts <= most_hosts, coherent_bytes a multiple of a line; no store of the memory is
  // unpersisted. `memory` outlives this.
  hosts(persistent_memory& memory, const host_options& options);

  [[nodiscard]] unsigned count() const noexcept { return options_.hosts; }
  [[nodiscard]] const persistent_memory& memory() const noexcept { return memory_; }
  // Only a part of the memory is coherent.
  [[nodiscard]] bool is_divided() const noexcept { return options_.coherence == coherence::partial; }
  [[nodiscard]] const host_counts& counts() const noexcept { return counts_; }
  [[nodiscard]] bool is_coherent(std::uintptr_t address) const noexcept {
    return options_.coherence == coherence::full ||
           (options_.coherence == coherence::partial && address - start() < options_.coherent_bytes);
  }

  // The host starts now, with empty caches. REQUIRES: it has stored nothing.
  void start_host(unsigned host);
  // The deaths, and the last load that missed a store of another host, in words, with code addresses in braces.
  [[nodiscard]] std::string story() const;

  // Memory holds what this host sees, from now on. REQUIRES: every store of before was announced by `stored`.
  void show(unsigned host);
  [[nodiscard]] unsigned shown() const noexcept { return shown_; }

  // The shown host is about to load or store. REQUIRES: memory holds no store that waits in a store buffer.
  // `unordered`: what its thread has invalidated since its last mfence.
  void before_access(std::uintptr_t address, std::size_t bytes, const void* caller, const invalidation_list& unordered);
  // The shown host has stored.
  void stored(std::uintptr_t address, std::size_t bytes, const void* caller);
  // The same around the caches (a non-temporal store): on the device after the next fence of `by`.
  void stored_around(std::uintptr_t address, std::size_t bytes, flush_list& by, const void* caller);
  void flushed(std::uintptr_t address, flush_list& by);
  void fenced(flush_list& by);
  // The shown host invalidates the line; behind its next mfence or locked instruction, loads take no older version.
  void invalidates(std::uintptr_t address, invalidation_list& lines);
  void invalidated(invalidation_list& lines);
  [[nodiscard]] bool sfence_invalidates() const noexcept { return options_.sfence_invalidates; }
  // True if memory holds only known content there, so a store has not been done yet.
  [[nodiscard]] bool is_known(std::uintptr_t address, std::size_t bytes) const noexcept;

  // Publications go around the caches, and are atomic for all hosts: before and after the words of this line change.
  void before_publication(std::uintptr_t address);
  void after_publication(std::uintptr_t address, const void* caller);

  // A compare-exchange that the device does, around all caches. Returns "" or the error: the shown host has stores to
  // the line that are not written back. `expected` becomes the value that was there; equal: the exchange was done.
  std::string device_compare_exchange(std::uint64_t* word, std::uint64_t& expected, std::uint64_t desired,
                                      const void* caller);

  // A turn ends: now and then some cache writes a line back.
  void turn_ends();

  // ---- deaths ----

  // The host is to die at its `number`-th such moment from now on. REQUIRES: it is alive; another one stays so.
  void doom(unsigned host, death_moment when, std::uint64_t number) noexcept { dooms_[host] = {when, number}; }
  // Those who have not died by now do not.
  void spare_all() noexcept { dooms_.fill({}); }
  // The shown host is about to do this to the memory. True: it dies before.
  [[nodiscard]] bool dies_before(shared_event what) noexcept;
  // So many events it had, from the first on.
  [[nodiscard]] std::uint64_t events_of(unsigned host) const noexcept { return events_of_[host]; }
  // From now on, events are counted, and the death of the options is to come.
  void begin_deaths() noexcept;
  // What the device may have got of the host that died by the options: so many choices, also if more than can be told
  // apart.
  [[nodiscard]] std::uint64_t choices() const noexcept { return choices_; }
  // The shown host dies; its threads do nothing any more. Memory then holds bytes of no host, until `show`.
  // REQUIRES: memory holds no store that waits in a store buffer.
  void die(const void* caller);
  [[nodiscard]] bool is_dead(unsigned host) const noexcept { return known_dead_at_[host][0] != 0; }
  // What the shown host knows: true for some time behind a death, which others may know before. Each look takes some of
  // that time.
  [[nodiscard]] bool seems_alive(unsigned host) noexcept;
  // Called at each death with the host.
  std::function<void(unsigned)> on_death;

  // ---- a power failure of all (power_failure.cpp) ----

  using kept_stores = std::span<const std::uint32_t>;
  // All that it may keep or lose beside the stores that the memory logs, now. Places of one line are neighbours.
  // Reserved blocks have none.
  void find_cached(std::vector<cached_stores>& places) const;
  // Calls visit(line, words) with the content of each line of which something is kept: kept[i] stores of places[i].
  template <class Visit>
  void for_each_kept_line(std::span<const cached_stores> places, kept_stores kept, Visit&& visit) const {
    for (std::size_t from = 0, end = 0; from < places.size(); from = end) {
      bool any = false;
      for (end = from; end < places.size() && places[end].line == places[from].line; ++end) any = any || kept[end] != 0;
      if (any) visit(places[from].line, content_of(places.subspan(from, end - from), kept.subspan(from, end - from)));
    }
  }
  // Each line whose versions differ has its durable content in memory, or what is kept of it. No host goes on.
  void crash(std::span<const cached_stores> places, kept_stores kept) const;
  // The place of the first store of `place` that is lost if so many are kept.
  [[nodiscard]] const void* first_lost(const cached_stores& place, std::uint32_t kept) const noexcept;
  // A line of text for each write-back among what is kept that puts old words over newer ones; code addresses in
  // braces.
  [[nodiscard]] std::string clobbers(std::span<const cached_stores> places, kept_stores kept) const;
  // The host whose stores to this coherent line the memory logs.
  [[nodiscard]] unsigned holder(std::uint32_t line) const noexcept {
    return holder_of(line) == 0 ? 0 : holder_of(line) - 1U;
  }

 private:
  struct around_store {
    std::uint32_t word;
    std::uint64_t mask;  // bytes stored to
    std::uint64_t value;
    const void* caller;
  };
  struct host_copy {
    std::uint64_t seen = 1;        // the version that the next load may take, or a newer one
    std::uint32_t dropped = 0;     // stores that are written back by now, and no more in `stores`
    std::uint32_t last_flush = 0;  // stores that a thread has flushed
    line_words base{};             // the version `seen`
    line_words words{};            // what the host sees: the base, and `stores`
    std::vector<logged_store> stores;
    std::vector<around_store> around;  // that have not reached the device

    [[nodiscard]] bool is_clean() const noexcept { return stores.empty() && around.empty(); }
  };
  struct shared_line {
    std::uint32_t number = 0;
    bool is_uneven = false;  // it is in `uneven_`
    line_versions versions;
    std::vector<host_copy> copies;  // by host
  };

  struct doomed {
    death_moment when = death_moment::before_event;
    std::uint64_t number = 0;  // 0: it is not
  };

  [[nodiscard]] std::uintptr_t start() const noexcept { return reinterpret_cast<std::uintptr_t>(memory_.start()); }
  [[nodiscard]] std::uint32_t line_of(std::uintptr_t address) const noexcept {
    return static_cast<std::uint32_t>((address - start()) / media::cache_line_bytes);
  }
  [[nodiscard]] std::uint64_t* memory_words(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint64_t*>(memory_.start()) + std::size_t{line} * words_per_line;
  }
  [[nodiscard]] shared_line* find(std::uint32_t line) noexcept {
    return place_of(line) == 0 ? nullptr : &lines_[place_of(line) - 1];
  }
  [[nodiscard]] const shared_line* find(std::uint32_t line) const noexcept {
    return place_of(line) == 0 ? nullptr : &lines_[place_of(line) - 1];
  }
  [[nodiscard]] std::uint32_t& place_of(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint32_t*>(places_.start())[line];
  }
  [[nodiscard]] std::uint8_t& holder_of(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint8_t*>(holders_.start())[line];
  }
  [[nodiscard]] std::uint32_t& last_load_of(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint32_t*>(last_loads_.start())[std::size_t{line} * options_.hosts + shown_];
  }
  // The shown host has the line in its caches from now on. A store loads its line, too.
  void loads(std::uint32_t line) noexcept {
    if (options_.stale == stale_lines::loaded) last_load_of(line) = ++loads_;
  }
  // It has given the line up.
  void drops(std::uint32_t line) noexcept {
    if (options_.stale == stale_lines::loaded) last_load_of(line) = 0;
  }
  // Its next load of the line finds no copy, so it takes the newest version.
  [[nodiscard]] bool has_dropped(std::uint32_t line) const noexcept {
    return options_.stale == stale_lines::loaded && last_load_of(line) == 0;
  }
  // The 64 bytes of a write-back of the copy's first stores.
  [[nodiscard]] static line_words written_back(const host_copy& copy, std::size_t stores) noexcept;
  // Whether it puts old words over newer ones.
  [[nodiscard]] static bool is_clobber(const host_copy& copy, std::size_t stores, const line_words& newest) noexcept;
  // What is on the device of the places' line if so many are kept of each.
  [[nodiscard]] line_words content_of(std::span<const cached_stores> places, kept_stores kept) const;
  [[nodiscard]] line_words durable_words(std::uint32_t line) const noexcept;
  void tell_of_store(std::uint32_t line);
  // The words of a copy become others.
  void changes_copy(shared_line& line);
  shared_line& open(std::uint32_t line);
  void take_from_holder(std::uint32_t line);
  void store_coherently(std::uint32_t line, std::uintptr_t address, std::size_t bytes, const void* caller);
  void load_line(std::uint32_t line, const void* caller, const invalidation_list& unordered);
  void note_miss(shared_line& line, const void* caller, const invalidation_list& unordered);
  void take(shared_line& line, unsigned host, std::uint64_t version);
  void write_back(shared_line& line, unsigned host, std::size_t stores);
  void arrive(shared_line& line, unsigned host);
  void add_version(shared_line& line, const line_words& words, unsigned host, const void* caller);
  // Once in so many times, but not where the death of the options chooses what the device gets.
  [[nodiscard]] bool leaves_by_chance(std::uint64_t one_in) noexcept { return !options_.death && happens(one_in); }
  [[nodiscard]] std::vector<std::uint32_t> dirty_coherent_lines() const;
  void count_choices() noexcept;
  [[nodiscard]] std::size_t choose(std::size_t choices) noexcept;
  [[nodiscard]] std::size_t stores_that_arrive(std::size_t count) noexcept;
  void lose_copy(shared_line& line, host_death& death);
  void lose_coherent_stores(host_death& death);
  [[nodiscard]] std::string story_of_miss() const;
  [[nodiscard]] bool happens(std::uint64_t one_in) noexcept { return one_in != 0 && below(one_in) == 0; }
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  persistent_memory& memory_;
  host_options options_;
  mapping places_;   // by line: 0: all hosts see the device's content; otherwise its place in lines_, plus 1
  mapping holders_;  // by coherent line: the host that stored last, plus 1
  // For `stale_lines::loaded`, by line and host: the number of the host's last load; 0: none since it gave the line up.
  mapping last_loads_;
  std::uint32_t loads_ = 0;         // all hosts' loads, counted there
  std::vector<shared_line> lines_;  // in the order in which they were first stored to
  // Places in it. A turn to another host changes few of the lines.
  std::vector<std::uint32_t> uneven_;  // all that two hosts which run see differently, and some others
  std::set<std::uint32_t> dirty_;      // all with a dirty copy, and some others
  unsigned shown_ = 0;
  std::array<bool, most_hosts> has_run_{true};  // by host: it was shown
  std::uint64_t random_;                        // state of splitmix64
  // One in so many; 0: never.
  std::uint64_t one_in_takes_newest_ = 1;
  std::uint64_t one_in_writes_back_ = 0;
  host_counts counts_;
  missed_store last_miss_;
  std::uint64_t tears_ = 0;                            // stores of more than 8 bytes
  std::uint64_t events_ = 0;                           // in all hosts
  std::array<std::uint64_t, most_hosts> events_of_{};  // by host
  std::array<doomed, most_hosts> dooms_{};             // by host
  std::uint64_t choices_ = 1;
  std::uint64_t choice_ = 0;   // remainder of the planned choice, behind those of earlier lines
  std::uint64_t sampled_ = 0;  // where the choices are too many: state of what draws them
  // By host, and by the one that looks: at this many events; 0: it is alive.
  std::array<std::array<std::uint64_t, most_hosts>, most_hosts> known_dead_at_{};
  std::vector<host_death> deaths_;
};

}  // namespace pmlab::simulator
