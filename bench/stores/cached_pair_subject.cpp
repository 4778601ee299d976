#include "bench/stores/cached_pair_subject.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/stores/kv_cache/pair_cache.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::store_bench {
namespace {

using stores::pair_cache;

class cached_subject final : public pair_subject {
 public:
  cached_subject(std::unique_ptr<pair_subject> inner, std::uint64_t cache_bytes)
      : inner_(std::move(inner)), bytes_(cache_bytes) {
    make_cache();
  }

  [[nodiscard]] pair_promises promises() const override { return inner_->promises(); }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned thread) override {
    return std::make_unique<queue>(*this, inner_->make_queue(depth, thread), depth);
  }
  void settle() override { inner_->settle(); }
  [[nodiscard]] bool can_reopen() const override { return inner_->can_reopen(); }
  void close() override { inner_->close(); }
  // The memory of a host that starts again is empty.
  void open() override {
    make_cache();
    inner_->open();
  }

  [[nodiscard]] pair_space space() override {
    pair_space s = inner_->space();
    s.memory_bytes =
        s.memory_bytes.value_or(0) + cache_->stats().bytes + most_under_way_.load(std::memory_order_relaxed);
    return s;
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    std::vector<store_statistic> all = inner_->statistics();
    if (!cache_->is_on()) return all;
    const stores::kv_cache_stats s = cache_->stats();
    all.emplace_back("cache_hits", s.hits);
    all.emplace_back("cache_misses", s.misses);
    return all;
  }
  [[nodiscard]] std::uint64_t device_cpu_ns() override { return inner_->device_cpu_ns(); }
  [[nodiscard]] std::optional<std::uint64_t> host_bytes() override { return inner_->host_bytes(); }
  [[nodiscard]] bool writes_to_drives() const override { return inner_->writes_to_drives(); }
  [[nodiscard]] std::optional<media::counts> counts() override { return inner_->counts(); }
  void reset_counts() override { inner_->reset_counts(); }
  [[nodiscard]] std::vector<std::string> remarks() override { return inner_->remarks(); }

 private:
  class queue final : public pair_queue {
   public:
    queue(cached_subject& of, std::unique_ptr<pair_queue> inner, unsigned depth)
        : of_(of), cache_(*of.cache_), inner_(std::move(inner)), slots_(depth) {
      for (slot& s : slots_) {
        s.number = free_.size();
        free_.push_back(&s);
      }
    }

    void put(std::string_view key, std::span<const std::byte> value, std::uint64_t tag) override {
      slot& s = begin(key, tag, value.size());
      s.value = value;
      s.change.emplace(cache_, space, key);
      s.is_put = true;
      inner_->put(key, value, s.number);
    }
    void get(std::string_view key, std::uint64_t tag) override {
      slot& s = begin(key, tag, 0);
      pair_cache::look seen = cache_.find(space, key);
      if (seen.value) {
        s.hit = std::move(seen.value);
        hits_.push_back(&s);
        return;
      }
      s.gate = seen.gate;
      inner_->get(key, s.number);
    }
    void erase(std::string_view key, std::uint64_t tag) override {
      slot& s = begin(key, tag, 0);
      s.change.emplace(cache_, space, key);
      inner_->erase(key, s.number);
    }
    void scan(std::string_view from, unsigned most, std::uint64_t tag) override {
      inner_->scan(from, most, begin(from, tag, 0).number);
    }

    [[nodiscard]] std::size_t reap(std::span<pair_answer> answers, std::size_t at_least) override {
      take_back();
      std::size_t count = 0;
      for (; count < answers.size() && !hits_.empty(); ++count) {
        slot& s = *hits_.front();
        hits_.pop_front();
        answers[count] = {.tag = s.tag, .value = *s.hit};
        end(s, s.hit->size());
      }
      const std::size_t done = inner_->reap(answers.subspan(count), count == 0 ? at_least : 0);
      for (pair_answer& a : answers.subspan(count, done)) take(a);
      return count + done;
    }

   private:
    static constexpr std::uint8_t space = 0;  // all keys are of one key space

    struct slot {
      std::uint64_t number = 0;
      std::uint64_t tag = 0;
      std::string_view key{};
      std::span<const std::byte> value{};  // value of a put
      std::size_t bytes = 0;               // bytes of its key and value
      bool is_put = false;
      std::optional<std::uint64_t> gate{};
      std::optional<pair_cache::write> change{};
      std::shared_ptr<const std::vector<std::byte>> hit{};
    };

    [[nodiscard]] slot& begin(std::string_view key, std::uint64_t tag, std::size_t value_bytes) {
      take_back();
      if (free_.empty()) throw error("too many operations are under way", "report this as a defect of the benchmark");
      slot& s = *free_.back();
      free_.pop_back();
      s.tag = tag;
      s.key = key;
      s.value = {};
      s.bytes = 0;
      s.is_put = false;
      s.gate.reset();
      hold(s, key.size() + value_bytes);
      return s;
    }
    // Memory of the host for an operation, from its beginning until the next call after its answer.
    void hold(slot& s, std::size_t bytes) {
      s.bytes += bytes;
      std::uint64_t now = of_.under_way_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
      std::uint64_t most = of_.most_under_way_.load(std::memory_order_relaxed);
      while (now > most && !of_.most_under_way_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
      }
    }
    void end(slot& s, std::size_t answer_bytes) {
      hold(s, answer_bytes);
      reaped_.push_back(&s);
    }
    void take(pair_answer& a) {
      slot& s = slots_[a.tag];
      a.tag = s.tag;
      if (s.change) {
        if (s.is_put && a.error == std::errc{}) s.change->end(s.value);
        s.change.reset();
      } else if (a.found && a.error == std::errc{} && a.pairs.empty()) {
        cache_.fill(space, s.key, a.value, s.gate);
      }
      end(s, a.value.size());
    }
    // What was reaped stays until the next call.
    void take_back() {
      for (slot* const s : reaped_) {
        of_.under_way_.fetch_sub(s->bytes, std::memory_order_relaxed);
        s->hit.reset();
        free_.push_back(s);
      }
      reaped_.clear();
    }

    cached_subject& of_;
    pair_cache& cache_;
    std::unique_ptr<pair_queue> inner_;
    std::deque<slot> slots_;
    std::vector<slot*> free_, reaped_;
    std::deque<slot*> hits_;
  };

  void make_cache() { cache_.emplace(stores::kv_cache_options{.bytes = bytes_}); }

  std::unique_ptr<pair_subject> inner_;
  std::uint64_t bytes_;
  std::optional<pair_cache> cache_{};
  std::atomic<std::uint64_t> under_way_{0}, most_under_way_{0};
};

}  // namespace

std::unique_ptr<pair_subject> with_host_cache(std::unique_ptr<pair_subject> inner, std::uint64_t cache_bytes) {
  return std::make_unique<cached_subject>(std::move(inner), cache_bytes);
}

}  // namespace pmlab::store_bench
