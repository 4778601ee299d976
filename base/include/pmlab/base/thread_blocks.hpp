// A block of memory per thread and object, which its thread may change without synchronization.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
template <class Block>
class thread_blocks {
 public:
  thread_blocks() : shared_(std::make_shared<shared_state>()) {}
  thread_blocks(const thread_blocks&) = delete;
  thread_blocks& operator=(const thread_blocks&) = delete;
  // A thread that outlives this removes its registration, so that nothing accumulates.
  ~thread_blocks() { mine_of_this_thread().forget(shared_->id); }

  // This thread's block. `make(number)` builds a new one, as a std::unique_ptr<Block>, if none is free; numbers count
  // the blocks from 0.
  template <class Make>
  [[nodiscard]] Block& local(Make&& make) {
    const used_block& used = last_used(shared_->id);
    if (used.owner == shared_->id) return *used.block;
    return find_or_register(std::forward<Make>(make));
  }

  // Calls `visit(const Block&)` with every block, also with blocks of threads that have ended.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::scoped_lock lock(shared_->mutex);
    for (const auto& block : shared_->blocks) visit(std::as_const(*block));
  }

  // The most threads that held a block at one time.
  [[nodiscard]] std::size_t most_threads() const {
    const std::scoped_lock lock(shared_->mutex);
    return shared_->blocks.size();
  }

 private:
  struct shared_state {
    std::uint64_t id = next_id.fetch_add(1, std::memory_order_relaxed);
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<Block>> blocks;
    std::vector<Block*> free;
  };

  struct registration {
    std::weak_ptr<shared_state> owner;
    std::uint64_t id;
    Block* block;
  };

  // The blocks of one thread, one per object: destroyed when the thread ends.
  class registrations {
   public:
    registrations() = default;
    registrations(const registrations&) = delete;
    registrations& operator=(const registrations&) = delete;
    ~registrations() {
      for (const registration& r : list_) give_back(r);
      last_used_ = {};
    }

    Block* find(std::uint64_t id) const noexcept {
      for (const registration& r : list_)
        if (r.id == id) return r.block;
      return nullptr;
    }

    void add(registration r) {
      std::erase_if(list_, [](const registration& old) { return old.owner.expired(); });
      list_.push_back(std::move(r));
    }

    void forget(std::uint64_t id) noexcept {
      std::erase_if(list_, [id](const registration& r) { return r.id == id; });
      if (last_used(id).owner == id) last_used(id) = {};
    }

   private:
    static void give_back(const registration& r) {
      const std::shared_ptr<shared_state> owner = r.owner.lock();
      if (owner == nullptr) return;
      const std::scoped_lock lock(owner->mutex);
      owner->free.push_back(r.block);
    }

    std::vector<registration> list_;
  };

  struct used_block {
    std::uint64_t owner = 0;
    Block* block = nullptr;
  };

  template <class Make>
  Block& find_or_register(Make&& make) {
    registrations& mine = mine_of_this_thread();
    Block* block = mine.find(shared_->id);
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
      mine.add({shared_, shared_->id, block});
      shared_->free.pop_back();
    }
    last_used(shared_->id) = {shared_->id, block};
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
  [[nodiscard]] static used_block& last_used(std::uint64_t id) noexcept { return last_used_[id % remembered]; }

  static inline std::atomic<std::uint64_t> next_id{1};
  static inline thread_local std::array<used_block, remembered> last_used_{};

  std::shared_ptr<shared_state> shared_;
};

}  // namespace pmlab
