// Blocks that a running operation may still read or write, although no chunk has them any more.
//
// Operations and freed extents belong to generations. A generation ends when no operation of the one before it runs;
// its predecessor's extents are free then: no running operation began while a chunk still had them.
#pragma once

#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/promised_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

namespace pmlab::stores::detail::chunk_store {

// Not thread-safe: behind the lock of the chunks whose extents it keeps.
class limbo {
 public:
  using generation = std::uint64_t;

  // An operation begins: extents that are freed from now on stay until it ends.
  [[nodiscard]] generation enter() noexcept {
    ++running_[now_ % 2];
    return now_;
  }
  void leave(generation began, free_map& free) noexcept {
    --running_[began % 2];
    collect(free);
  }

  // So many more extents can be put, until as many are released. Throws std::bad_alloc; nothing changed then.
  void promise(std::size_t count) {
    freed_[0].promise(count);
    try {
      freed_[1].promise(count);
    } catch (const std::bad_alloc&) {
      freed_[0].release(count);
      throw;
    }
  }
  void release(std::size_t count) noexcept {
    for (auto& list : freed_) list.release(count);
  }
  [[nodiscard]] std::size_t promised() const noexcept { return freed_[0].promised(); }
  // REQUIRES: a promise that has not ended.
  void put(extent e) noexcept { freed_[now_ % 2].put(e); }

  // Frees all extents that no operation can use.
  void collect(free_map& free) noexcept {
    for (int turn = 0; turn < 2; ++turn) {
      if (freed_[0].empty() && freed_[1].empty()) return;
      const std::size_t before = (now_ + 1) % 2;  // the generation before this one, and the place of the next one
      if (running_[before] != 0) return;
      for (const extent& e : freed_[before]) free.give(e);
      times_freed_ += freed_[before].size();
      freed_[before].clear();
      ++now_;
    }
  }

  [[nodiscard]] bool empty() const noexcept { return freed_[0].empty() && freed_[1].empty(); }

  // How many extents became free.
  [[nodiscard]] std::uint64_t times_freed() const noexcept { return times_freed_; }
  // Operations that have begun and not ended.
  [[nodiscard]] std::uint64_t running() const noexcept { return running_[0] + running_[1]; }

  // Calls visit(extent) for each.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& list : freed_)
      for (const extent& e : list) visit(e);
  }

 private:
  generation now_ = 1;
  std::array<std::uint64_t, 2> running_{};
  std::array<promised_list<extent>, 2> freed_;
  std::uint64_t times_freed_ = 0;
};

// Readers, counted by the time they began: answers whether all readers from before a moment have left. Not thread-safe.
class reader_epochs {
 public:
  using epoch = std::uint64_t;

  [[nodiscard]] epoch enter() noexcept {
    ++running_[now_ % 2];
    return now_;
  }
  void leave(epoch began) noexcept { --running_[began % 2]; }
  // Readers that enter from now on may have this epoch, too; have_left waits for some of them in vain, never for ever.
  [[nodiscard]] epoch now() const noexcept { return now_; }
  // True: each reader that entered before now() was `when` has left.
  [[nodiscard]] bool have_left(epoch when) noexcept {
    while (now_ < when + 2 && running_[(now_ + 1) % 2] == 0) ++now_;
    return now_ >= when + 2;
  }

 private:
  epoch now_ = 1;
  std::array<std::uint64_t, 2> running_{};
};

}  // namespace pmlab::stores::detail::chunk_store
