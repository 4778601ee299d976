// Memory whose durable content the machine tracks: a log of stores for every cache line that is not durable.
//
//   memory    the content that the program loads and stores
//   log       per line, in program order, the stores that may or may not survive
//
// A crash keeps, of every line independently of the others, the durable content and any prefix of the line's stores; a
// store of at most 8 aligned bytes is kept or lost as a whole. A flush records the end of a line's log; the next fence
// of the same thread makes the stores up to there durable.
#pragma once

#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/blocks.hpp"
#include "checker/simulator/machine/mapping.hpp"
#include "checker/simulator/machine/space_limit.hpp"
#include <pmlab/media/lines.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::simulator {

inline constexpr std::size_t words_per_line = media::cache_line_bytes / sizeof(std::uint64_t);

inline constexpr std::uint32_t nowhere = ~std::uint32_t{0};

struct logged_store {
  std::uint64_t value;
  const void* caller;  // in the code that stored
  std::uint32_t word;  // in its line
};

// A line with stores that may not be durable.
struct unpersisted_line {
  std::uint32_t number = 0;      // in its memory
  std::uint32_t dropped = 0;     // stores that are durable by now, and no more in `stores`
  std::uint32_t last_flush = 0;  // stores that a thread has flushed, durable ones included
  std::uint32_t position = 0;    // in the list of unpersisted lines; nowhere: in a block that nothing leads to yet
  std::array<std::uint64_t, words_per_line> newest{};
  std::vector<logged_store> stores;  // in program order
};

// The stores of a line that a killed process has left in the caches.
struct waiting_line {
  std::uint32_t number = 0;
  std::vector<logged_store> stores{};
};

// Flushes of one thread since its last fence.
struct flushed_line {
  std::uint32_t line;
  std::uint32_t stores;  // stores of the line's log, durable ones included
};
using flush_list = std::vector<flushed_line>;

class persistent_drive;

// Informed of every event that changes the states that a crash may leave. Called on the fiber that caused it, with
// observation off.
class persistence_observer {
 public:
  virtual ~persistence_observer() = default;
  virtual void after_store(const unpersisted_line& line) = 0;  // its last store is new
  virtual void after_fence() = 0;                              // or a publication: something became durable
  // One of several hosts has stored to this line, which is not coherent: the store is in its cache (hosts.hpp).
  virtual void after_cached_store(std::uint32_t /*line*/, unsigned /*host*/) {}
  // The changes of a publication are durable, and stores of before to their lines are not.
  virtual void amid_publication() { after_fence(); }
  // Something may become durable, or another block live, this moment: the states of before are the last of their kind.
  virtual void before_durable() {}
  // A drive has new versions: of one unit, or (`nowhere`) of several.
  virtual void after_submission(const persistent_drive& /*drive*/, std::uint32_t /*unit*/) {}
};

// Thread safety: none; fibers share one kernel thread.
class persistent_memory {
 public:
  // All memories lie in one area.
  static constexpr std::uintptr_t area_start = 0x100000000000;
  static constexpr std::size_t area_bytes = std::size_t{16} << 40;
  [[nodiscard]] static bool in_area(std::uintptr_t address) noexcept { return address - area_start < area_bytes; }

  // The medium `simulated`: nothing at offset 0, which is null; then the table of roots; then blocks.
  static constexpr std::size_t roots_at = 4096;
  static constexpr std::size_t first_block = 2 * 4096;

  // `bytes`: a multiple of 4096. Every new memory lies where none was before. All zero, durably.
  explicit persistent_memory(std::size_t bytes);

  [[nodiscard]] std::byte* start() const noexcept { return memory_.start(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }
  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return address - reinterpret_cast<std::uintptr_t>(start()) < bytes();
  }

  void observe(persistence_observer* observer) noexcept { observer_ = observer; }
  [[nodiscard]] persistence_observer* observer() const noexcept { return observer_; }
  // Every later change of durable content adds its line to `lines`, some twice; null: no more.
  void note_durable_lines(std::vector<std::uint32_t>* lines) noexcept { durable_lines_ = lines; }
  // Off, as at first: of a word that is written again and again without a flush, only the last value is a state.
  void keep_every_store(bool on) noexcept { keeps_every_store_ = on; }
  // Off: stores are durable at once, for runs without crashes. Unpersisted stores become durable.
  void keep_log(bool on);

  // The program stored to [address, address + bytes): reads the new content from memory.
  void stored(std::uintptr_t address, std::size_t bytes, const void* caller);
  void flushed(std::uintptr_t address, flush_list& by);
  // True if memory holds only durable or logged content there.
  [[nodiscard]] bool is_known(std::uintptr_t address, std::size_t bytes) const noexcept;
  void fenced(flush_list& by);
  // All of `changes` atomically, and then, of the lines that they store to, all earlier stores: libpmemobj logs the
  // words alone, and writes their lines back behind that. Returns "" or the error.
  std::string publish(std::span<const pmlab_change> changes);

  // A write-back by one of several hosts: the line's durable content becomes `words`. REQUIRES: no store of the line is
  // logged.
  void write_line(std::uint32_t line, const std::array<std::uint64_t, words_per_line>& words);

  // The host that has stored to the line is dead: only the first `kept` of its logged stores are durable now, and
  // memory has no others.
  void lose_stores(std::uint32_t line, std::size_t kept);

  // In a reserved block: before a publication keeps it, its content after a crash is free space.
  [[nodiscard]] bool is_reserved(std::uint32_t line) const noexcept { return state_of(line) == line_state::reserved; }
  // Lines of reserved blocks are not among them.
  [[nodiscard]] const std::vector<std::uint32_t>& unpersisted() const noexcept { return unpersisted_; }
  [[nodiscard]] const unpersisted_line& log(std::uint32_t id) const noexcept { return logs_[id]; }
  // Log of a line (by its number), or nullptr if all of it is durable.
  [[nodiscard]] const unpersisted_line* log_of(std::uint32_t line) const noexcept {
    return id_of_line_[line] == 0 ? nullptr : &logs_[id_of_line_[line] - 1];
  }

  // Changes whenever something becomes durable.
  [[nodiscard]] std::uint64_t durable_version() const noexcept { return durable_version_; }
  // A hash of the durable content: equal contents, equal hashes.
  [[nodiscard]] std::uint64_t durable_hash() const noexcept { return durable_hash_; }
  // The hash after the first `stores` unpersisted stores of a line are durable as well.
  [[nodiscard]] std::uint64_t hash_with(std::uint64_t hash, const unpersisted_line& line,
                                        std::size_t stores) const noexcept;
  // The hash after the line has this content. REQUIRES: no store of it is logged.
  [[nodiscard]] std::uint64_t hash_with(std::uint64_t hash, std::uint32_t line,
                                        const std::array<std::uint64_t, words_per_line>& words) const noexcept;

  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }
  [[nodiscard]] const std::byte* durable() const noexcept { return durable_.start(); }
  // Writes the content after a crash to `target` (used_bytes() long): of the i-th unpersisted line, choice[i] stores.
  void write_image(std::byte* target, std::span<const std::uint32_t> choice) const noexcept;

  // What a process that is killed now leaves in the caches.
  [[nodiscard]] std::vector<waiting_line> waiting() const;
  // Behind `restore`: these stores are visible, and not durable.
  void store_again(std::span<const waiting_line> lines);

  // Replaces the content of this memory by a crash image: of the i-th unpersisted line, choice[i] stores.
  void crash(std::span<const std::uint32_t> choice);
  // While hidden, memory faults when touched; images can be written.
  void hide() const noexcept { memory_.hide(); }
  void show() const noexcept { memory_.show(); }
  // Loads an image: `used` bytes of `image`, all durable.
  void restore(const std::byte* image, std::size_t used);
  // All zero again, no block allocated.
  void reset();

  // "" if memory is equal to durable content + logged stores, otherwise the first word that differs: a store bypassed
  // the instrument.
  [[nodiscard]] std::string audit() const;

  // Blocks, for the medium `simulated`. `reserve` returns nullptr when the memory is full, or `limit` refuses.
  [[nodiscard]] const block_table& blocks() const noexcept { return blocks_; }
  // `low`: below the division, if there is one.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment, bool low = false);
  // As block_table::divide_at, until `reset`.
  void divide_blocks_at(std::size_t end) noexcept { blocks_.divide_at(end); }
  void cancel(void* block);
  void restore_blocks(const block_table::extents& blocks, std::size_t top);
  // As block_table::place_small_blocks_at, until the next call.
  void place_small_blocks_at(std::size_t bytes_into_line) noexcept {
    small_blocks_at_ = bytes_into_line;
    blocks_.place_small_blocks_at(bytes_into_line);
  }
  // Until the next call, or `reset`.
  void limit(const space_limit& to) noexcept { limit_ = to; }
  [[nodiscard]] const space_limit& limit() const noexcept { return limit_; }
  // For example a mapped file, whose blocks are not reported.
  void cover_all() noexcept { covers_all_ = true; }
  // False: the address lies in no block.
  [[nodiscard]] bool covers(std::uintptr_t address) const noexcept {
    const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(start());
    return offset < first_block || covers_all_ || state_of(offset / media::cache_line_bytes) != line_state::free;
  }
  // Makes everything below `end` (an offset) part of images.
  void use_up_to(std::size_t end) noexcept { used_ = used_ < end ? end : used_; }

 private:
  static constexpr std::size_t longest_log = 48;

  // For audit. "": none is logged.
  [[nodiscard]] std::string last_store_to(std::uint32_t line) const;

  [[nodiscard]] std::uint64_t* memory_words(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint64_t*>(start()) + std::size_t{line} * words_per_line;
  }
  [[nodiscard]] std::uint64_t* durable_words(std::uint32_t line) const noexcept {
    return reinterpret_cast<std::uint64_t*>(durable_.start()) + std::size_t{line} * words_per_line;
  }
  unpersisted_line& open_log(std::uint32_t line);
  void store_word(std::uint32_t line, std::uint32_t word, const void* caller);
  void make_durable(std::uint32_t line, std::uint32_t stores);
  void close_log(std::uint32_t id);
  void store_durably(std::uint32_t line, std::uint32_t word, std::uint64_t value);
  enum class line_state : std::uint8_t { free, reserved, live };
  void set_state(std::size_t offset, std::size_t bytes, line_state state);
  [[nodiscard]] line_state& state_of(std::size_t line) const noexcept {
    return reinterpret_cast<line_state*>(states_.start())[line];
  }
  // The word alone.
  void publish_store(std::uint64_t* word, std::uint64_t value);
  [[nodiscard]] std::uint32_t line_of(const void* address) const noexcept {
    const auto bytes = static_cast<std::size_t>(static_cast<const std::byte*>(address) - start());
    return static_cast<std::uint32_t>(bytes / media::cache_line_bytes);
  }
  // A crash may still lose stores to the line.
  [[nodiscard]] bool has_uncertain_words(std::uint32_t line) const noexcept;

  mapping memory_;
  mapping durable_;
  mapping table_;
  mapping states_;             // a line_state for each line
  std::uint32_t* id_of_line_;  // 0: no log; otherwise its place in logs_, plus 1
  std::vector<unpersisted_line> logs_;
  std::vector<std::uint32_t> free_logs_;
  std::vector<std::uint32_t> unpersisted_;  // places in logs_
  block_table blocks_;
  std::size_t small_blocks_at_ = 0;
  space_limit limit_;
  std::size_t used_ = first_block;  // an image has all of the table of roots
  std::uint64_t durable_version_ = 0;
  std::uint64_t durable_hash_ = 0;
  std::uint64_t tears_ = 0;  // wide stores so far: decides in which order their words go
  bool logging_ = true;
  bool covers_all_ = false;
  bool keeps_every_store_ = false;
  std::vector<std::uint32_t>* durable_lines_ = nullptr;
  persistence_observer* observer_ = nullptr;
};

}  // namespace pmlab::simulator
