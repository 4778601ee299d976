// A medium that several hosts share, of lines that they share: named roots, blocks, and publications that the death of
// a host in the middle leaves whole or undone.
//
//   | head | roots | hosts | logs | owners of chunks | units | chunks: coherent ones, then the others |
//
// A publication is one of a host's log:
//   (T1) < (T2): the changes are there before their number.
//   (T2) < (T3): so, from the first change on, a host that finds the log completes it.
//   (T3) < (T4): it is complete before the number is 0.
// Behind a death the first host that asks whether the dead one lives completes its log, before it has the answer:
// (D1) < (D2). So the words that a publication stores need a lock whose holder is asked about, as pod::version_lock is,
// or one writer: no host stores to them between the death and (D1). Units need no lock: each change of them is made
// once (space_blocks.hpp).
//
// The log is libpmemobj's redo log, one for each host. Units: [Delay-free].
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>
#include <pmlab/pod/host_slots.hpp>
#include <pmlab/pod/line_memory.hpp>
#include <pmlab/pod/space_blocks.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::pod {

// One host's view of the space. Hosts that die are recovered by those that live, and a host that has the space alone
// recovers all, as behind a power failure.
//
// Thread safety: every operation from any number of threads of any number of hosts, which may die. Progress:
// publications of more than a store wait for those of other threads of the host; named_root for a host that is in it.
// Durability: as `Lines`. What a host had reserved and not published is free when it has died.
template <line_memory Lines, space_sizes Sizes = space_sizes{}>
class space {
  static_assert(Sizes.hosts > 0 && Sizes.hosts <= change_name::most_hosts);

  // What a change does: the low bits of where it does it.
  enum class kind : std::uint64_t { keep, store, release };
  struct change {
    std::uint64_t where;
    std::uint64_t what;  // the value; or the bytes of the block
    [[nodiscard]] bool is(kind k) const noexcept { return (where & kind_mask) == static_cast<std::uint64_t>(k); }
    [[nodiscard]] std::uint64_t offset() const noexcept { return where & ~kind_mask; }
    static constexpr std::uint64_t kind_mask = 7;
  };

 public:
  static constexpr bool durable = true;  // code for a durable medium runs on it: see is_durable()
  // pointers are checked, and the file decides whether it is durable
  static constexpr media::optional_parts parts{.pointer_bound = true, .varying_durability = true};
  static constexpr bool shared_by_hosts = true;  // see media::pod_medium

  // Joins the space in a memory of these lines; makes one where the first word is 0. `arguments` make the lines.
  // REQUIRES: it is made before a second host comes. Throws pmlab::error: that of the lines; the memory is too small,
  // or of another space; as many hosts have it open as it has slots.
  template <class... Arguments>
  explicit space(Arguments&&... arguments)
      : lines_(std::forward<Arguments>(arguments)...),
        plan_(plan_of(lines_)),
        hosts_(lines_, head_().slots),
        blocks_(lines_, plan_.ranges, words_at(plan_.owners, plan_.ranges.end),
                words_at(plan_.units, plan_.ranges.end * words_per_chunk), hosts_) {
    open();
    join();
    blocks_.be(hosts_.slot_of(host_), state_);
    // Where a word leads that a dead host had begun to store.
    recover_the_dead();
  }
  space(const space&) = delete;
  space& operator=(const space&) = delete;
  // Leaves: another host may have the number. REQUIRES: no index on it is used any more.
  ~space() {
    blocks_.leave();
    const std::size_t slot = hosts_.slot_of(host_);
    set_stage(slot, state_, host_stage::none);
    lines_.release_host(static_cast<unsigned>(slot));
  }

  // Changes of roots, words and blocks that happen together: see media::publication. Thread safety: one thread.
  class publication {
   public:
    // Nothing happens yet. `s` outlives it.
    explicit publication(space& s) noexcept : space_(s) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      for (std::size_t i = 0; i < count_; ++i)
        if (changes_[i].is(kind::keep)) space_.cancel(space_.lines_.at(changes_[i].offset()), changes_[i].what);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) { return reserve(bytes, alignment, false); }
    [[nodiscard]] void* allocate_coherent(std::size_t bytes, std::size_t alignment) {
      return reserve(bytes, alignment, true);
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { add(kind::store, &word, value); }
    void release(void* block, std::size_t bytes) { add(kind::release, block, bytes); }
    void commit() {
      space_.publish({changes_.data(), count_});
      count_ = 0;
    }

   private:
    [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment, bool is_coherent) {
      check_room();
      void* const block = space_.reserve(bytes, alignment, is_coherent);
      if (block != nullptr) add(kind::keep, block, bytes);
      return block;
    }
    void check_room() const {
      if (count_ == changes_.size())
        throw error("a publication of too many changes", "publish at most media::publication_limit at once");
    }
    void add(kind k, const void* where, std::uint64_t what) {
      check_room();
      changes_[count_++] = {space_.lines_.offset_of(where) | static_cast<std::uint64_t>(k), what};
    }

    space& space_;
    std::array<change, media::publication_limit> changes_;
    std::size_t count_ = 0;
  };

  // ---- media::medium ----

  [[nodiscard]] std::string name() const { return lines_.name(); }
  [[nodiscard]] bool is_durable() const { return lines_.is_durable(); }
  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(lines_.at(p.word()));
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(lines_.offset_of(object));
  }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return lines_.bytes(); }
  void flush(const void* address, std::size_t bytes) noexcept { lines_.flush(address, bytes); }
  void fence() noexcept { lines_.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { lines_.copy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  [[nodiscard]] media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    const exclusive<Lines> alone(lines_, hosts_, head_().root_lock, hosts_.slot_of(host_), state_);
    lines_.refresh(&head_().roots, sizeof(media::root_table));
    return head_().roots.find_or_add(name, layout, version, [&](const media::root_entry& e) { publish_lines(e); });
  }
  // Reads the units of all blocks.
  [[nodiscard]] media::usage used() const {
    return {blocks_.allocated_bytes(), (plan_.ranges.end - plan_.ranges.first) * Sizes.chunk_bytes};
  }

  // Completes what hosts had begun that have died, and makes room for as many. False: there are none. Others do so when
  // they join, when they find no room, and about the holder of a lock; so a host that works for long calls it now and
  // then, where hosts die often. Reads a line of each slot.
  bool recover_the_dead() const noexcept {
    bool is_any = false;
    for (std::size_t slot = 0; slot < Sizes.hosts; ++slot) {
      // The kernel names no lock of this process itself.
      const auto standing = hosts_.standing_at(slot, [this](host_state state) { return state != state_; });
      if (standing.is != kind_of_standing::died) continue;
      recover(slot, standing.state);
      is_any = true;
    }
    return is_any;
  }

  // What it lies in.
  [[nodiscard]] const Lines& lines() const noexcept { return lines_; }

  // ---- media::pod_medium ----

  [[nodiscard]] unsigned hosts() const noexcept { return lines_.is_alone() ? 1 : Sizes.hosts; }
  [[nodiscard]] unsigned host() const noexcept { return host_; }
  // Where it has died, its last publication is complete now, or never was one.
  [[nodiscard]] bool host_is_alive(unsigned host) const noexcept {
    if (host == host_) return true;
    const auto standing = hosts_.standing_of(host);
    if (standing.is == kind_of_standing::died) recover(hosts_.slot_of(host), standing.state);  // (D1)
    return standing.is == kind_of_standing::alive;                                             // (D2)
  }
  void refresh(const void* address, std::size_t bytes) noexcept { lines_.refresh(address, bytes); }
  [[nodiscard]] bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                                             std::uint64_t desired) noexcept {
    return lines_.device_compare_exchange(word, expected, desired);
  }

 private:
  using blocks = space_blocks<Lines, Sizes>;
  static constexpr std::size_t words_per_chunk = blocks::words_per_chunk;
  using kind_of_standing = typename host_slots<Lines>::standing::kind;
  // version_lock has room for no greater number.
  static constexpr unsigned greatest_host = 0x7fff;

  // A host's log. It alone stores to it, while it lives.
  struct redo_log {
    alignas(media::cache_line_bytes) std::atomic<std::uint64_t> count{0};  // changes of a publication; 0: there is none
    std::atomic<std::uint64_t> last{0};  // number of its last change of units: no host of the slot had a greater one
    alignas(media::cache_line_bytes)
        std::array<std::array<std::atomic<std::uint64_t>, 2>, media::publication_limit> changes{};
  };

  struct head {
    alignas(media::cache_line_bytes) device_word made{0};  // what it was made as; 0: it is not made yet
    alignas(media::cache_line_bytes) device_word root_lock{0};
    alignas(media::cache_line_bytes) device_word recovery_lock{0};
    media::root_table roots{};
    std::array<host_slot, Sizes.hosts> slots{};
    std::array<redo_log, Sizes.hosts> logs{};
  };

  struct plan {
    std::uint64_t owners = 0;  // offset of a word for each chunk
    std::uint64_t units = 0;   // offset of words_per_chunk words for each
    chunk_ranges ranges;
  };
  [[nodiscard]] static plan plan_of(const Lines& lines) {
    const std::uint64_t chunks = lines.bytes() / Sizes.chunk_bytes;
    plan result;
    result.owners = sizeof(head);
    result.units = result.owners + media::whole_lines(chunks * sizeof(device_word));
    const std::uint64_t own = result.units + chunks * words_per_chunk * sizeof(device_word);
    result.ranges.first = static_cast<std::size_t>((own + Sizes.chunk_bytes - 1) / Sizes.chunk_bytes);
    result.ranges.end = static_cast<std::size_t>(chunks);
    const std::uint64_t coherent = lines.coherent_bytes() / Sizes.chunk_bytes;
    result.ranges.first_stale = coherent == 0 ? result.ranges.first : static_cast<std::size_t>(coherent);
    if (lines.coherent_bytes() > lines.bytes())
      throw error("of the " + std::to_string(lines.bytes()) + " bytes of " + lines.name() + ", " +
                      std::to_string(lines.coherent_bytes()) + " cannot be coherent",
                  "give a smaller part, or all");
    const std::uint64_t least = result.ranges.first + 1;
    if (chunks < least || (coherent != 0 && coherent < least))
      throw error(
          lines.name() + " is too small to be shared: " + std::to_string(lines.bytes()) + " bytes, of which " +
              std::to_string(lines.coherent_bytes()) + " are coherent",
          "give it " + std::to_string(least * Sizes.chunk_bytes) + " bytes, all or none of them coherent, or more");
    return result;
  }

  [[nodiscard]] head& head_() const noexcept { return *reinterpret_cast<head*>(lines_.at(0)); }
  [[nodiscard]] std::span<device_word> words_at(std::uint64_t offset, std::size_t count) const noexcept {
    return {reinterpret_cast<device_word*>(lines_.at(offset)), count};
  }
  template <class T>
  void publish_lines(const T& object) const noexcept {
    lines_.flush(&object, sizeof object);
    lines_.fence();
  }

  // ---- making and joining ----

  void open() {
    // Sizes and layout; and that all of it was made.
    const std::uint64_t as = mix_bits(lines_.bytes() ^ mix_bits(lines_.coherent_bytes() + Sizes.hosts) ^
                                      mix_bits(Sizes.chunk_bytes + layout_version)) |
                             1;
    std::uint64_t found = now(lines_, head_().made);
    if (found == 0) {
      make();
      static_cast<void>(lines_.device_compare_exchange(head_().made, found, as));
      publish_lines(head_().made);
      found = as;
    }
    if (found != as)
      throw error(lines_.name() + " has no space of these sizes", "open it with the sizes that it was made with");
  }
  // All that is not a chunk is zero: no roots, no hosts, no logs, no owners, and nothing is allocated.
  void make() noexcept {
    const std::span<device_word> all = words_at(0, plan_.ranges.first * Sizes.chunk_bytes / sizeof(device_word));
    for (device_word& word : all) word.store(0, std::memory_order_relaxed);
    lines_.flush(all.data(), all.size_bytes());
    lines_.fence();
  }

  void join() {
    if (lines_.is_alone()) recover_all();
    for (unsigned slot = 0; slot < Sizes.hosts; ++slot)
      if (joins_at(slot)) return;
    if (lines_.is_alone())
      throw error(lines_.name() + " has no number for another host: so many have died on it",
                  "move its entries to a new one");
    throw error("all " + std::to_string(Sizes.hosts) + " hosts that " + lines_.name() + " has room for have it open",
                "close it on one of them; where they have died, let one that lives call recover_the_dead(), or open it "
                "alone once");
  }
  [[nodiscard]] bool joins_at(unsigned slot) {
    const host_state before = hosts_.state_of(slot);
    const host_state mine = before.joined();
    if (before.stage() == host_stage::joined || hosts_.number_of(slot, mine) > greatest_host || !lines_.take_host(slot))
      return false;
    std::uint64_t seen = before.word();
    if (!lines_.device_compare_exchange(hosts_[slot].state, seen, mine.word())) {
      lines_.release_host(slot);
      return false;
    }
    publish_lines(hosts_[slot].state);
    // This host's caches may have it as one of before has left it.
    lines_.refresh(&head_().logs[slot], sizeof(redo_log));
    host_ = hosts_.number_of(slot, mine);
    state_ = mine;
    return true;
  }

  // ---- deaths ----

  // Any number of hosts and threads may come here about one that has died in this state.
  void recover(std::size_t slot, host_state died) const noexcept {
    const exclusive<Lines> alone(lines_, hosts_, head_().recovery_lock, hosts_.slot_of(host_), state_);
    if (hosts_.state_of(slot) != died) return;
    complete(slot);
    set_stage(slot, died, host_stage::dead);
  }
  void set_stage(std::size_t slot, host_state state, host_stage stage) const noexcept {
    std::uint64_t before = state.word();
    static_cast<void>(lines_.device_compare_exchange(hosts_[slot].state, before, state.at(stage).word()));
    publish_lines(hosts_[slot]);
  }
  // No other host has it open.
  void recover_all() noexcept {
    for (std::size_t slot = 0; slot < Sizes.hosts; ++slot) complete(slot);
    blocks_.recover();
    for (device_word* const lock : {&head_().root_lock, &head_().recovery_lock}) {
      std::uint64_t holder = now(lines_, *lock);
      static_cast<void>(lines_.device_compare_exchange(*lock, holder, 0));
    }
    for (std::size_t slot = 0; slot < Sizes.hosts; ++slot)
      if (const host_state state = hosts_.state_of(slot); state.stage() == host_stage::joined)
        set_stage(slot, state, host_stage::dead);
  }
  // Makes the changes of the log that a dead host has left.
  void complete(std::size_t slot) const noexcept {
    redo_log& log = head_().logs[slot];
    lines_.refresh(&log, sizeof log);
    if (const std::uint64_t count = log.count.load(std::memory_order_acquire); count != 0) {
      if (is_valid(log, count)) make_changes(log, count, slot);
      end(log);
    }
    // Units have no greater number of this slot.
    raise(lines_, hosts_[slot].done, log.last.load(std::memory_order_acquire));
  }
  // Not damaged so that a change would lie beyond the memory.
  [[nodiscard]] bool is_valid(const redo_log& log, std::uint64_t count) const noexcept {
    if (count > media::publication_limit) return false;
    for (std::size_t i = 0; i < count; ++i) {
      const change c = change_at(log, i);
      const std::uint64_t bytes = c.is(kind::store) ? sizeof(device_word) : c.what;
      if (c.offset() >= lines_.bytes() || bytes > lines_.bytes() - c.offset()) return false;
    }
    return true;
  }

  // ---- publications ----

  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment, bool is_coherent) {
    void* block = blocks_.reserve(bytes, alignment, is_coherent);
    // Chunks of dead hosts that no host has asked about are free then.
    if (block == nullptr && recover_the_dead()) block = blocks_.reserve(bytes, alignment, is_coherent);
    // This host's caches may have lines of another block that was here: a store to a part of one would write them back.
    if (block != nullptr) lines_.refresh(block, bytes);
    return block;
  }

  void cancel(void* block, std::size_t bytes) noexcept {
    // Stores to it may be in this host's caches: they leave them before the block can be another host's.
    lines_.refresh(block, bytes);
    blocks_.cancel(block, bytes);
  }

  void publish(std::span<const change> changes) {
    if (changes.empty()) return;
    if (changes.size() == 1 && changes.front().is(kind::store)) {
      lines_.device_store(*words_at(changes.front().offset(), 1).data(), changes.front().what);
      lines_.fence();
      return;
    }
    const std::scoped_lock lock(log_mutex_);
    const std::size_t slot = hosts_.slot_of(host_);
    redo_log& log = head_().logs[slot];
    for (std::size_t i = 0; i < changes.size(); ++i) {
      log.changes[i][0].store(changes[i].where, std::memory_order_relaxed);
      log.changes[i][1].store(changes[i].what, std::memory_order_relaxed);
    }
    lines_.flush(&log.changes, changes.size() * sizeof log.changes[0]);
    lines_.fence();  // (T1)
    log.last.store(blocks_.more_numbers(changes_of_units(log, changes.size())), std::memory_order_release);
    log.count.store(changes.size(), std::memory_order_release);
    publish_lines(log.count);  // (T2)
    make_changes(log, changes.size(), slot);
    end(log);
    // Before another thread publishes: it may have reserved what is free again.
    for (const change& c : changes) {
      if (c.is(kind::keep)) blocks_.keep(lines_.at(c.offset()), c.what);
      if (c.is(kind::release)) blocks_.freed(lines_.at(c.offset()), c.what);
    }
  }
  [[nodiscard]] static change change_at(const redo_log& log, std::size_t i) noexcept {
    return {log.changes[i][0].load(std::memory_order_acquire), log.changes[i][1].load(std::memory_order_acquire)};
  }
  [[nodiscard]] static std::uint64_t changes_of_units(const redo_log& log, std::size_t count) noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (const change c = change_at(log, i); !c.is(kind::store)) sum += blocks::changes_of(c.offset(), c.what);
    return sum;
  }
  void make_changes(const redo_log& log, std::size_t count, std::size_t slot) const noexcept {
    std::uint64_t number = log.last.load(std::memory_order_acquire) - changes_of_units(log, count) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const change c = change_at(log, i);
      if (c.is(kind::store)) {
        lines_.device_store(*words_at(c.offset(), 1).data(), c.what);
        continue;
      }
      blocks_.change(c.offset(), c.what, c.is(kind::keep), static_cast<unsigned>(slot), number);
      number += blocks::changes_of(c.offset(), c.what);
    }
    lines_.fence();  // (T3)
  }
  void end(redo_log& log) const noexcept {
    log.count.store(0, std::memory_order_release);
    publish_lines(log.count);  // (T4)
  }

  static constexpr std::uint64_t layout_version = 2;  // a space's bytes have it

  mutable Lines lines_;
  plan plan_;
  host_slots<Lines> hosts_;
  mutable blocks blocks_;
  std::mutex log_mutex_;
  unsigned host_ = 0;
  host_state state_{0};  // its slot's
};

}  // namespace pmlab::pod
