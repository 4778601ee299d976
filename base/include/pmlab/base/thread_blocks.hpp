// A block of memory per thread and object, which its thread may change without synchronization.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace pmlab {

// Gives each calling thread a Block of its own. The block of an ended thread is reused, with its contents, by the next
// new thread: there are never more blocks than there were threads at one time.
//
// Thread safety: all operations from any thread. `local` costs a comparison once a thread has its block; the first call
// of a thread takes a mutex. A Block is cache-line aligned, so that threads share no line.
// A program and the libraries that it loads may use one object, and each may have a copy of this template's variables.
// So an object is known by its address, and nothing is counted in one place. A library that made an object may be
// unloaded behind the end of the object, whatever threads have used it.
template <class Block>
class thread_blocks {
 public:
  thread_blocks() : shared_(new shared_state) {}
  thread_blocks(const thread_blocks&) = delete;
  thread_blocks& operator=(const thread_blocks&) = delete;
  // A thread that outlives this removes its registration, so that nothing accumulates.
  ~thread_blocks() {
    mine_of_this_thread().forget(*shared_);
    shared_->end();
  }

  // This thread's block. `make(number)` builds a new one, as a std::unique_ptr<Block>, if none is free; numbers count
  // the blocks from 0.
  template <class Make>
  [[nodiscard]] Block& local(Make&& make) {
    const used_block& used = last_used(*shared_);
    if (used.owner == shared_.get()) return *used.block;
    return find_or_register(std::forward<Make>(make));
  }

  // Calls `visit(const Block&)` with every block, also with blocks of threads that have ended.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::scoped_lock lock(shared_->mutex);
    for (const auto& block : shared_->blocks) visit(std::as_const(*block));
  }

  // The most threads that held a block at one time. A thread counts once for each module with variables of its own.
  [[nodiscard]] std::size_t most_threads() const {
    const std::scoped_lock lock(shared_->mutex);
    return shared_->blocks.size();
  }

 private:
  // What an object and its registrations share. It has its address until the last of them is gone, so no other object
  // is taken for it.
  struct shared_state {
    // Destroys the blocks. Threads may still have registrations.
    void end() noexcept {
      std::vector<std::unique_ptr<Block>> last;
      const std::scoped_lock lock(mutex);
      has_ended.store(true, std::memory_order_relaxed);
      free.clear();
      last.swap(blocks);
    }

    void give_back(Block* block) noexcept {
      const std::scoped_lock lock(mutex);
      if (!has_ended.load(std::memory_order_relaxed)) free.push_back(block);  // has room for all blocks
    }

    const std::size_t place = next_place.fetch_add(1, std::memory_order_relaxed) % remembered;
    std::atomic<std::size_t> references{0};
    std::atomic<bool> has_ended{false};  // changed under `mutex`
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<Block*> free;
  };

  // Not a std::shared_ptr, whose last owner calls code of the module that made the first one.
  class reference {
   public:
    explicit reference(shared_state* to) noexcept : to_(to) { to_->references.fetch_add(1, std::memory_order_relaxed); }
    reference(const reference& other) noexcept : reference(other.to_) {}
    reference(reference&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
    reference& operator=(reference other) noexcept {
      std::swap(to_, other.to_);
      return *this;
    }
    ~reference() {
      if (to_ != nullptr && to_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete to_;
    }
    [[nodiscard]] shared_state* get() const noexcept { return to_; }
    [[nodiscard]] shared_state& operator*() const noexcept { return *to_; }
    [[nodiscard]] shared_state* operator->() const noexcept { return to_; }

   private:
    shared_state* to_;
  };

  struct registration {
    reference owner;
    Block* block;
  };

  // The blocks of one thread, one per object: destroyed when the thread ends.
  class registrations {
   public:
    registrations() = default;
    registrations(const registrations&) = delete;
    registrations& operator=(const registrations&) = delete;
    ~registrations() {
      for (const registration& r : list_) r.owner->give_back(r.block);
      last_used_ = {};
    }

    Block* find(const shared_state& owner) const noexcept {
      for (const registration& r : list_)
        if (r.owner.get() == &owner) return r.block;
      return nullptr;
    }

    void add(registration r) {
      remove_if([](const shared_state& owner) { return owner.has_ended.load(std::memory_order_relaxed); });
      list_.push_back(std::move(r));
    }

    void forget(const shared_state& owner) noexcept {
      remove_if([&](const shared_state& other) { return &other == &owner; });
    }

   private:
    // Whose registration is removed is not among the last used ones either: its address may be another object's soon.
    template <class Condition>
    void remove_if(Condition&& condition) noexcept {
      std::erase_if(list_, [&](const registration& r) {
        if (!condition(*r.owner)) return false;
        if (last_used(*r.owner).owner == r.owner.get()) last_used(*r.owner) = {};
        return true;
      });
    }

    std::vector<registration> list_;
  };

  struct used_block {
    const shared_state* owner = nullptr;
    Block* block = nullptr;
  };

  template <class Make>
  Block& find_or_register(Make&& make) {
    registrations& mine = mine_of_this_thread();
    Block* block = mine.find(*shared_);
    if (block == nullptr) {
      const std::scoped_lock lock(shared_->mutex);
      if (shared_->free.empty()) {
        // `make` may show its block to others: nothing can fail after it.
        make_room_for_one_more(shared_->blocks);
        shared_->free.reserve(shared_->blocks.capacity());
        shared_->blocks.push_back(make(shared_->blocks.size()));
        shared_->free.push_back(shared_->blocks.back().get());
      }
      block = shared_->free.back();
      mine.add({shared_, block});
      shared_->free.pop_back();
    }
    last_used(*shared_) = {shared_.get(), block};
    return *block;
  }

  template <class T>
  static void make_room_for_one_more(std::vector<T>& list) {
    if (list.size() == list.capacity()) list.reserve(std::max<std::size_t>(2 * list.size(), 4));
  }

  // Not a static member: g++ 12 cannot compile two of them that need a constructor at run time in one file.
  static registrations& mine_of_this_thread() {
    static thread_local registrations mine;
    return mine;
  }

  // An operation may use several objects (the epochs of an index and of string keys over it): each has a place of its
  // own, unless eight others were made between them.
  static constexpr std::size_t remembered = 8;
  [[nodiscard]] static used_block& last_used(const shared_state& owner) noexcept { return last_used_[owner.place]; }

  static inline std::atomic<std::size_t> next_place{1};
  static inline thread_local std::array<used_block, remembered> last_used_{};

  reference shared_;
};

}  // namespace pmlab
