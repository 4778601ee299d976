// The hosts of a memory: who has joined it, who has died, and locks that outlive their holders.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/pod/line_memory.hpp>
#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::pod {

// Words of a memory that hosts change by exchanges of the device alone: no cache has a store to them.
using device_word = std::atomic<std::uint64_t>;

// Where a host stands.
enum class host_state : std::uint64_t {
  none,    // no host has the number, or it has left in order
  joined,  // one has it, which lives, or has died and is not recovered yet
  dead,    // it has died, and what it had begun is complete
};

// A host's line.
struct alignas(media::cache_line_bytes) host_slot {
  device_word state{0};  // host_state
  // Changes of units (space_blocks.hpp) by this host have numbers. Those up to this one are done; so are those whose
  // numbers the units have.
  device_word done{0};
};
static_assert(sizeof(host_slot) == media::cache_line_bytes);

// The word as the device has it.
template <line_memory Lines>
[[nodiscard]] std::uint64_t now(Lines& lines, const device_word& word) noexcept {
  lines.refresh(&word, sizeof word);
  return word.load(std::memory_order_acquire);
}

// Changes the word, durably, unless it is greater already.
template <line_memory Lines>
void raise(Lines& lines, device_word& word, std::uint64_t value) noexcept {
  std::uint64_t seen = now(lines, word);
  while (seen < value && !lines.device_compare_exchange(word, seen, value)) {
  }
  // Another host may have raised it, and not have flushed it yet.
  lines.flush(&word, sizeof word);
  lines.fence();
}

// A lock of one word, 0 or the number of its holder + 1, for what is done seldom. One that died holding it gives way.
// Progress: waits for a holder that lives. REQUIRES: a number is not used again while a dead host of it holds the word.
template <line_memory Lines>
class exclusive {
 public:
  exclusive(Lines& lines, device_word& word, unsigned host) noexcept : lines_(lines), word_(word), mine_(host + 1) {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t holder = now(lines_, word_);
      // The other threads of this host hold it as this host does.
      if (holder == mine_ || (holder != 0 && !lines_.has_died(static_cast<unsigned>(holder - 1)))) continue;
      if (lines_.device_compare_exchange(word_, holder, mine_)) return;
    }
  }
  exclusive(const exclusive&) = delete;
  exclusive& operator=(const exclusive&) = delete;
  ~exclusive() {
    std::uint64_t holder = mine_;
    static_cast<void>(lines_.device_compare_exchange(word_, holder, 0));
  }

 private:
  Lines& lines_;
  device_word& word_;
  std::uint64_t mine_;
};

}  // namespace pmlab::pod
