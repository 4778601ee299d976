// Helpers: threads that search the index for a key while their caller searches the cache.
//
// Use them if misses are many and a core is free: a miss then costs as much as the index alone. A hit does not wait for
// its helper, whose search continues, and wastes bandwidth.
//
// Each helper serves one calling thread. A caller without one, or whose helper still runs an earlier search, searches
// by itself.
//
// Order:
//   H1  A caller numbers its requests. It stores the key before the number (locked instruction); the helper stores its
//       result before the same number as `answered` (release). The caller accepts only that number: a late result is
//       ignored. It makes a new request only when the last one was answered, and so waits for no other.
//   H2  A helper announces that it sleeps (locked instruction) before it checks for a request for the last time; a
//       caller stores its request (locked instruction) before it checks whether the helper sleeps.
//   H3  A helper that ends announces it after its last check. A caller that waits sees that, and searches by itself.
#pragma once

#include <pmlab/cache/options.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/background_threads.hpp>
#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace pmlab::cache {

// The threads and their mailboxes. Part of an asynchronous cache; not for use by itself. Thread safety: `ask` and
// `close` from any number of threads. Progress: `ask` is wait-free, except for waking a sleeping helper.
class helpers {
  struct mailbox;

 public:
  // Searches the index; called by helpers, many at a time.
  using search = std::function<std::optional<indexes::value_type>(indexes::key_type)>;

  // `find` searches the index; it may throw. Throws pmlab::error: the system gives no more threads.
  helpers(const options& o, search find) : find_(std::move(find)), spins_(o.helper_spins), threads_(o.cpus) {
    for (unsigned i = 0; i < o.helpers; ++i) mailboxes_.push_back(std::make_unique<mailbox>());
    try {
      for (const auto& m : mailboxes_)
        threads_.start("a thread of the cache", "ask for fewer fillers and helpers",
                       [this, &mine = *m] { serve(mine); });
    } catch (...) {
      close();
      throw;
    }
  }
  helpers(const helpers&) = delete;
  helpers& operator=(const helpers&) = delete;
  ~helpers() { close(); }

  // The number of helpers.
  [[nodiscard]] std::size_t count() const noexcept { return mailboxes_.size(); }

  // Ends the threads. May be called while others call `ask`.
  void close() {
    closing_.store(true, std::memory_order_seq_cst);
    for (const auto& m : mailboxes_) wake(*m);
    threads_.join();
  }

  // A request under way. An abandoned one needs no cleanup.
  class question {
   public:
    // False: there is no helper for it.
    [[nodiscard]] bool is_asked() const noexcept { return mailbox_ != nullptr; }

    // Waits for the result. False: there is none, and `value` is unchanged.
    bool wait(std::optional<indexes::value_type>& value) const noexcept {
      for (sync::backoff wait;; wait.pause()) {
        const bool gone = mailbox_->gone.load(std::memory_order_acquire);     // H3
        if (mailbox_->answered.load(std::memory_order_acquire) == number_) {  // H1
          const auto found = static_cast<answer>(mailbox_->found.load(std::memory_order_relaxed));
          if (found == answer::failed) return false;
          value.reset();
          if (found == answer::found) value = mailbox_->value.load(std::memory_order_relaxed);
          return true;
        }
        if (gone) return false;
      }
    }

   private:
    friend class helpers;
    mailbox* mailbox_ = nullptr;
    std::uint64_t number_ = 0;
  };

  // Requests a search for `key` from the helper of the caller with this number (each number one thread at a time).
  [[nodiscard]] question ask(std::size_t caller, indexes::key_type key) noexcept {
    question q;
    if (caller >= mailboxes_.size() || closing_.load(std::memory_order_relaxed)) return q;
    mailbox& m = *mailboxes_[caller];
    const std::uint64_t last = m.asked.load(std::memory_order_relaxed);
    if (m.answered.load(std::memory_order_acquire) != last) return q;  // H1
    m.key.store(key, std::memory_order_relaxed);
    m.asked.exchange(last + 1, std::memory_order_seq_cst);  // H1, H2
    if (m.sleeps.load(std::memory_order_seq_cst)) wake(m);  // H2
    q.mailbox_ = &m;
    q.number_ = last + 1;
    return q;
  }

  // The bytes of DRAM.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return mailboxes_.size() * sizeof(mailbox); }

 private:
  enum class answer : std::uint8_t { absent, found, failed };

  struct alignas(128) mailbox {
    std::atomic<std::uint64_t> asked{0};
    std::atomic<indexes::key_type> key{0};
    alignas(64) std::atomic<std::uint64_t> answered{0};
    std::atomic<indexes::value_type> value{0};
    std::atomic<std::uint8_t> found{0};
    std::atomic<bool> gone{false};
    alignas(64) std::atomic<bool> sleeps{false};
    std::mutex sleeping;
    std::condition_variable woken;
  };

  void serve(mailbox& m) {
    for (std::uint64_t done = 0; wait_for_question(m, done);) {
      const std::uint64_t number = m.asked.load(std::memory_order_acquire);  // H1
      answer found = answer::failed;
      try {
        const std::optional<indexes::value_type> value = find_(m.key.load(std::memory_order_relaxed));
        found = value ? answer::found : answer::absent;
        m.value.store(value.value_or(0), std::memory_order_relaxed);
      } catch (...) {
        // The caller searches again by itself, and gets the exception.
      }
      m.found.store(static_cast<std::uint8_t>(found), std::memory_order_relaxed);
      m.answered.store(number, std::memory_order_release);  // H1
      done = number;
    }
    m.gone.store(true, std::memory_order_release);  // H3
  }

  // False: the helpers are to end.
  bool wait_for_question(mailbox& m, std::uint64_t done) {
    const auto has_work = [&] {
      return m.asked.load(std::memory_order_seq_cst) != done || closing_.load(std::memory_order_seq_cst);
    };
    sync::backoff wait;
    for (std::uint64_t spins = 0; spins < spins_; ++spins, wait.pause())
      if (has_work()) return !closing_.load(std::memory_order_relaxed);
    std::unique_lock lock(m.sleeping);
    m.sleeps.exchange(true, std::memory_order_seq_cst);  // H2
    m.woken.wait(lock, has_work);
    m.sleeps.store(false, std::memory_order_seq_cst);
    return !closing_.load(std::memory_order_relaxed);
  }

  // Locking `sleeping` orders this notify after the waiter's predicate check, so no wakeup is lost.
  static void wake(mailbox& m) noexcept {
    { const std::scoped_lock lock(m.sleeping); }
    m.woken.notify_all();
  }

  search find_;
  std::uint64_t spins_;
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<mailbox>> mailboxes_;
  sync::bound_threads threads_;
};

}  // namespace pmlab::cache
