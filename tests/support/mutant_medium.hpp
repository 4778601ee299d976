// A crash_medium that breaks its promises on purpose. A crash scenario that does not notice tests nothing.
//
// The index is not touched: what it asks for is right, what it gets is wrong, as if the flush, the fence or the
// publication had been forgotten in its source.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/crash_medium.hpp"

namespace pmlab::tests {

enum class mutation : std::uint8_t {
  none,
  flush_dropped,                  // one flush forgotten
  fence_dropped,                  // one fence forgotten
  flush_of_wrong_line,            // the line after the right one, as from a wrong address (A9, C3)
  flush_misses_last_line,         // a range that crosses a line, of which the last one is forgotten (C12, F1)
  flush_after_fence,              // flush and fence swapped
  publication_not_durable,        // the words are stored, and never written back
  publication_torn,               // its words become durable one after the other (C3, L2)
  published_words_before_blocks,  // words durable before the blocks that they lead to are allocated
  published_blocks_before_words,  // blocks allocated for good before a word leads to them: they leak (C14)
  release_lost,                   // a block that is released stays allocated (A4)
  release_before_words,           // a block is free while durable words still lead to it
};

[[nodiscard]] constexpr std::string_view to_string(mutation m) noexcept {
  switch (m) {
    case mutation::none: return "none";
    case mutation::flush_dropped: return "flush_dropped";
    case mutation::fence_dropped: return "fence_dropped";
    case mutation::flush_of_wrong_line: return "flush_of_wrong_line";
    case mutation::flush_misses_last_line: return "flush_misses_last_line";
    case mutation::flush_after_fence: return "flush_after_fence";
    case mutation::publication_not_durable: return "publication_not_durable";
    case mutation::publication_torn: return "publication_torn";
    case mutation::published_words_before_blocks: return "published_words_before_blocks";
    case mutation::published_blocks_before_words: return "published_blocks_before_words";
    case mutation::release_lost: return "release_lost";
    case mutation::release_before_words: return "release_before_words";
  }
  return "?";
}

// The mutation strikes at every `every`-th chance for it (a flush, a fence, a publication whose content it can harm) or
// only once, at chance number `only`, which counts from 1.
struct mutation_plan {
  mutation what = mutation::none;
  std::uint64_t every = 1;
  std::uint64_t only = 0;
};

// Thread safety: none, as crash_medium.
class mutant_medium {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{};

  explicit mutant_medium(mutation_plan plan) : plan_(plan) {}
  mutant_medium(const mutant_medium&) = delete;
  mutant_medium& operator=(const mutant_medium&) = delete;

  class publication {
   public:
    explicit publication(mutant_medium& medium) noexcept : medium_(medium), blocks_(medium.inner_) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() = default;

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const block = blocks_.allocate(bytes, alignment);
      allocates_ = allocates_ || block != nullptr;
      return block;
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { stores_.emplace_back(&word, value); }
    void release(void* block, std::size_t bytes) { releases_.emplace_back(block, bytes); }

    void commit() {
      // Each step below is one that survives or not by itself. The unharmed publication has one.
      switch (medium_.struck_mutation(*this)) {
        case mutation::publication_not_durable:
          add_releases(blocks_);
          blocks_.commit();
          for (const auto& [word, value] : stores_) word->store(value, std::memory_order_release);
          break;
        case mutation::publication_torn:
          blocks_.store(*stores_.front().first, stores_.front().second);
          blocks_.commit();
          add_stores(blocks_, 1);
          add_releases(blocks_);
          blocks_.commit();
          break;
        case mutation::published_words_before_blocks: {
          crash_medium::publication words(medium_.inner_);
          add_stores(words, 0);
          words.commit();
          add_releases(blocks_);
          blocks_.commit();
          break;
        }
        case mutation::published_blocks_before_words:
          blocks_.commit();
          add_stores(blocks_, 0);
          add_releases(blocks_);
          blocks_.commit();
          break;
        case mutation::release_lost:
          add_stores(blocks_, 0);
          blocks_.commit();
          break;
        case mutation::release_before_words: {
          crash_medium::publication releases(medium_.inner_);
          add_releases(releases);
          releases.commit();
          add_stores(blocks_, 0);
          blocks_.commit();
          break;
        }
        default:
          add_stores(blocks_, 0);
          add_releases(blocks_);
          blocks_.commit();
      }
      allocates_ = false;
      stores_.clear();
      releases_.clear();
    }

   private:
    friend class mutant_medium;

    void add_stores(crash_medium::publication& change, std::size_t from) const {
      for (std::size_t i = from; i < stores_.size(); ++i) change.store(*stores_[i].first, stores_[i].second);
    }
    void add_releases(crash_medium::publication& change) const {
      for (const auto& [block, bytes] : releases_) change.release(block, bytes);
    }

    mutant_medium& medium_;
    crash_medium::publication blocks_;
    bool allocates_ = false;
    std::vector<std::pair<std::atomic<std::uint64_t>*, std::uint64_t>> stores_;
    std::vector<std::pair<void*, std::size_t>> releases_;
  };

  [[nodiscard]] crash_medium& inner() noexcept { return inner_; }
  // How often the mutation did its harm: a test of a mutation that never struck tests nothing.
  [[nodiscard]] std::uint64_t strikes() const noexcept { return strikes_; }
  // How often it could have done it.
  [[nodiscard]] std::uint64_t chances() const noexcept { return chances_; }

  [[nodiscard]] std::size_t shards(std::size_t usual) const noexcept { return inner_.shards(usual); }

  [[nodiscard]] std::string name() const { return "mutant"; }

  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return inner_.resolve(p);
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return inner_.locate(object);
  }

  void flush(const void* start, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t first_line = address / media::cache_line_bytes;
    const std::size_t last_line = (address + bytes - 1) / media::cache_line_bytes;
    const std::size_t up_to_last_line = last_line * media::cache_line_bytes - address;
    switch (plan_.what) {
      case mutation::flush_dropped:
        if (strikes_now()) return;
        break;
      case mutation::flush_of_wrong_line:
        if (strikes_now())
          return inner_.flush(static_cast<const std::byte*>(start) + up_to_last_line + media::cache_line_bytes, bytes);
        break;
      case mutation::flush_misses_last_line:
        if (first_line != last_line && strikes_now()) return inner_.flush(start, up_to_last_line);
        break;
      case mutation::flush_after_fence:
        if (strikes_now()) {
          late_.emplace_back(start, bytes);
          return;
        }
        break;
      default: break;
    }
    inner_.flush(start, bytes);
  }

  void fence() noexcept {
    if (plan_.what == mutation::fence_dropped && strikes_now()) return;
    inner_.fence();
    for (const auto& [start, bytes] : late_) inner_.flush(start, bytes);
    late_.clear();
  }

  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    std::memcpy(target, source, bytes);
    flush(target, bytes);
  }
  void annotate_read(const void* start, std::size_t bytes) noexcept { inner_.annotate_read(start, bytes); }

  [[nodiscard]] media::root named_root(std::string_view root_name, std::string_view layout, std::uint64_t version) {
    return inner_.named_root(root_name, layout, version);
  }
  [[nodiscard]] media::usage used() const { return inner_.used(); }

 private:
  bool strikes_now() noexcept {
    ++chances_;
    if (plan_.only != 0 ? chances_ != plan_.only : chances_ % plan_.every != 0) return false;
    ++strikes_;
    return true;
  }

  // The plan's mutation if it can harm `change` and this is its turn.
  mutation struck_mutation(const publication& change) noexcept {
    bool harmful = false;
    switch (plan_.what) {
      case mutation::publication_not_durable: harmful = !change.stores_.empty(); break;
      case mutation::publication_torn: harmful = change.stores_.size() > 1; break;
      case mutation::published_words_before_blocks:
      case mutation::published_blocks_before_words: harmful = change.allocates_ && !change.stores_.empty(); break;
      case mutation::release_lost: harmful = !change.releases_.empty(); break;
      case mutation::release_before_words: harmful = !change.releases_.empty() && !change.stores_.empty(); break;
      default: break;
    }
    return harmful && strikes_now() ? plan_.what : mutation::none;
  }

  crash_medium inner_;
  mutation_plan plan_;
  std::uint64_t chances_ = 0;
  std::uint64_t strikes_ = 0;
  std::vector<std::pair<const void*, std::size_t>> late_;
};

static_assert(media::medium<mutant_medium>);

}  // namespace pmlab::tests
