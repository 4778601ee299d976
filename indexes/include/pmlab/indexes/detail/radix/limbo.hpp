// The nodes of a radix tree that were unlinked and that readers may still be in.
//
//   head of the tree: | root | first block |          block: | next block | 63 words, each 0 or a node with its kind |
//
// A node enters the limbo in the publication that unlinks it, and leaves it in the one that releases its block. The
// words that are free are known in DRAM, so that both take constant time.
//
// Invariants:
//   B1  A block of the tree is linked, in the limbo, or free; after every crash, too. So nothing leaks.
//   B2  A node in the limbo is released when no guard is left that began before it was unlinked (sync::epochs), or by
//       the next open, which has no readers yet.
//   B3  Without a writer, a word has a node or is free: a word that no list knows would be lost until the next open.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

namespace pmlab::indexes::detail::radix {

inline constexpr std::size_t words_per_limbo_block = 63;

struct limbo_block {
  std::atomic<media::pointer<limbo_block>> next{};
  std::array<std::atomic<std::uint64_t>, words_per_limbo_block> waiting{};
};

// Named by the root of the medium.
struct tree_head {
  std::atomic<std::uint64_t> root{0};  // the root node; never changes
  limbo_block limbo;
};

[[nodiscard]] inline error corrupt(const std::string& what) { return damaged_tree("radix tree", what); }

// Thread safety: every operation from any number of threads, but for `begin`.
template <media::medium Medium, class Kinds>
class limbo {
  using publication = typename Medium::publication;

 public:
  explicit limbo(Medium& medium) noexcept : medium_(medium) {}

  // Releases all that the last run left. Throws pmlab::error: the limbo is corrupt, and nothing was released.
  void begin(limbo_block& first) {
    first_ = &first;
    const std::vector<limbo_block*> blocks = found_blocks();
    constexpr std::size_t at_once = media::publication_limit / 2;
    std::vector<std::atomic<std::uint64_t>*> left;
    for (limbo_block* const b : blocks)
      for (auto& word : b->waiting)
        if (word.load(std::memory_order_acquire) != 0) left.push_back(&word);
    std::unordered_set<std::uint64_t> met;
    for (const auto* const word : left) {
      const slot_word link(word->load(std::memory_order_relaxed));
      if (!names_an_unlinked_node(link) || !met.insert(link.child()).second) throw damaged();
    }
    for (std::size_t done = 0; done < left.size(); done += at_once) {
      publication change(medium_);
      for (std::size_t i = done; i < std::min(done + at_once, left.size()); ++i) release(change, *left[i]);
      change.commit();
    }
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      publication change(medium_);
      media::publish_store(change, first.next, blocks[i]->next.load(std::memory_order_relaxed));  // (B1)
      change.release(blocks[i], sizeof(limbo_block));                                             // (B2)
      // (B1), (B2) < return: one publication, so a block is in the list or free, never both.
      change.commit();
    }
    free_.reserve(words_per_limbo_block);
    add(first);
  }

  // A free word for the next node, or nullptr: no space. It is the caller's until `give_back` or `release`.
  [[nodiscard]] std::atomic<std::uint64_t>* take() noexcept {
    const std::scoped_lock guard(mutex_);
    if (free_.empty() && !add_block()) return nullptr;
    auto* const word = free_.back();
    free_.pop_back();
    return word;
  }
  void give_back(std::atomic<std::uint64_t>& word) noexcept {
    const std::scoped_lock guard(mutex_);
    free_.push_back(&word);  // never beyond what was reserved
  }

  // Adds to `change`, which unlinks the node of this link: the node is in the limbo.
  static void publish(publication& change, std::atomic<std::uint64_t>& word, slot_word link, header& n) {
    change.store(word, link.word());                                      // (B3)
    media::publish_store<publication>(change, n.gone, std::uint64_t{1});  // (B8)
    // (B3), (B8) < return: one publication with the unlinking, so a crash leaves the node linked or in the limbo (B1).
  }

  // Releases the block of the node in `word`, when no reader can be in it.
  void release(std::atomic<std::uint64_t>& word) {
    {
      publication change(medium_);
      release(change, word);
      change.commit();
    }
    give_back(word);
  }

  // Bytes of the nodes in the limbo, and of its further blocks. REQUIRES: no writer.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t result = 0;
    for (const limbo_block* const b : found_blocks()) {
      result += b == first_ ? 0 : sizeof(limbo_block);
      for (const auto& word : b->waiting)
        if (const slot_word link(word.load(std::memory_order_acquire)); !link.is_empty())
          result += Kinds::bytes(link.kind());
    }
    return result;
  }

  // Checks B3, and that the list of blocks can be followed. REQUIRES: no writer.
  void check(check_report& report) const {
    std::vector<limbo_block*> blocks;
    try {
      blocks = found_blocks();
    } catch (const error&) {
      report.add("B1: the list of the limbo's blocks leads where no block is, or back");
      return;
    }
    std::size_t waiting = 0;
    for (const limbo_block* const b : blocks)
      for (const auto& word : b->waiting) waiting += word.load(std::memory_order_acquire) != 0 ? 1 : 0;
    if (free_.size() + waiting != words_) report.add("B3: a word of the limbo has no node and is not free");
  }

  [[nodiscard]] static error damaged() { return corrupt("its unlinked nodes"); }

 private:
  [[nodiscard]] bool names_an_unlinked_node(slot_word link) const noexcept {
    if (!link.is_link() || !Kinds::is_kind(link.kind())) return false;
    const media::pointer<header> at(link.child());
    return media::can_name(medium_, at, Kinds::bytes(link.kind())) && medium_.resolve(at)->is_gone() &&
           medium_.resolve(at)->depth() == link.depth();
  }

  void release(publication& change, std::atomic<std::uint64_t>& word) const {
    const slot_word link(word.load(std::memory_order_relaxed));
    change.store(word, 0);                                                                             // (B4)
    change.release(medium_.resolve(media::pointer<header>(link.child())), Kinds::bytes(link.kind()));  // (B5)
    // (B4), (B5) < return: as (B1), (B2).
  }

  // REQUIRES: `free_` has room for all words there are, so that `give_back` never fails.
  void add(limbo_block& b) {
    for (auto& word : b.waiting) free_.push_back(&word);
    words_ += words_per_limbo_block;
  }

  [[nodiscard]] bool add_block() noexcept {
    try {
      free_.reserve(words_ + words_per_limbo_block);
      publication change(medium_);
      auto* const made = media::create<limbo_block>(change);
      if (made == nullptr) return false;
      made->next.store(first_->next.load(std::memory_order_relaxed), std::memory_order_relaxed);
      media::persist(medium_, *made);                                    // (B6)
      media::publish_store(change, first_->next, medium_.locate(made));  // (B7)
      // (B6) < (B7): the list never leads to memory that is not durable.
      change.commit();
      add(*made);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  // Follows no pointer that cannot name a block, and terminates.
  [[nodiscard]] std::vector<limbo_block*> found_blocks() const {
    std::vector<limbo_block*> result{first_};
    std::unordered_set<std::uint64_t> met;
    for (auto at = first_->next.load(std::memory_order_acquire); at;) {
      if (!media::can_name(medium_, at) || !met.insert(at.word()).second) throw damaged();
      result.push_back(medium_.resolve(at));
      at = result.back()->next.load(std::memory_order_acquire);
    }
    return result;
  }

  Medium& medium_;
  limbo_block* first_ = nullptr;
  std::mutex mutex_;
  std::vector<std::atomic<std::uint64_t>*> free_;
  std::size_t words_ = 0;  // words of all blocks
};

}  // namespace pmlab::indexes::detail::radix
