// Key-value SSDs as a store of pairs: one, or several over which keys are spread.
//
// All that such a device does inside runs in the threads that call. So the CPU time of its calls is the device's, and
// not the host's: the host hands commands over and takes answers.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/platform.hpp>
#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/kv_ssd/queue.hpp>
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/subject_medium.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

// CPU time of calls that stand for a device. Reading the clock of a thread is a call of the kernel, which takes longer
// than the host's part of an operation: it is measured once, and counted as the device's.
class device_cpu {
 public:
  device_cpu() {
    constexpr std::uint64_t rounds = 200;
    const std::uint64_t began = now();
    for (std::uint64_t i = 0; i < rounds; ++i) const call c(*this);
    const std::uint64_t all = now() - began;
    outside_ns_ = (all - std::min(all, sum_.load(std::memory_order_relaxed))) / rounds;
    sum_.store(0, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t ns() const noexcept { return sum_.load(std::memory_order_relaxed); }

  // A call of the device by this thread.
  class call {
   public:
    explicit call(device_cpu& of) noexcept : of_(of), began_(now()) {}
    call(const call&) = delete;
    call& operator=(const call&) = delete;
    ~call() {
      if (!platform::has_virtual_time) of_.sum_.fetch_add(now() - began_ + of_.outside_ns_, std::memory_order_relaxed);
    }

   private:
    device_cpu& of_;
    std::uint64_t began_;
  };

 private:
  [[nodiscard]] static std::uint64_t now() noexcept {
    if (platform::has_virtual_time) return 0;
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
  }

  std::atomic<std::uint64_t> sum_{0};
  std::uint64_t outside_ns_ = 0;  // time of the two readings of the clock that they do not see themselves
};

// Parts of the device are switched off in stores of some names, to see their gain. In a small run its write buffer is
// small, too, a 32nd of the data: else most pairs would stay in it, and reads of them would need no flash.
[[nodiscard]] inline stores::kv_options kv_options_of(const pair_setup& setup, std::size_t devices) {
  constexpr std::uint64_t least = std::uint64_t{1} << 20;
  constexpr std::uint64_t part = 32;
  stores::kv_options o;
  o.local_table = setup.store != "kv_ssd_no_local";
  o.bloom = setup.store != "kv_ssd_no_filter";
  if (setup.value_bytes <= least / 16) {
    o.largest_value = std::max<std::size_t>(setup.value_bytes, 4096);
    const std::uint64_t data = setup.records * setup.value_bytes / devices;
    o.buffer_bytes = std::clamp<std::uint64_t>(std::bit_floor(data / part), least, o.buffer_bytes);
  }
  return o;
}

// A key-value SSD whose words are on a medium.
template <class Medium>
class kv_ssd_subject final : public pair_subject {
  using device = stores::kv_device<Medium, blocks::any_device>;

 public:
  // `medium` holds no device yet. It has room for the roots of five devices: `another` makes one for five more, if
  // there may be one.
  kv_ssd_subject(std::shared_ptr<Medium> medium, const pair_drives& drives, const stores::kv_options& options,
                 const std::function<std::shared_ptr<Medium>()>& another)
      : drives_(drives.main), has_firmware_(drives.main.front()->pairs() != nullptr), options_(options) {
    media_.push_back(std::move(medium));
    while (media_.size() * devices_of_a_medium < drives_.size()) {
      if (another == nullptr)
        throw error("memory " + media_.front()->name() + " for " + std::to_string(drives_.size()) +
                        " devices: it has room for " + std::to_string(devices_of_a_medium),
                    "give fewer --devices, or memory in no pool");
      media_.push_back(another());
    }
    // A file that is overwritten may have another device.
    open_with(true);
  }

  [[nodiscard]] pair_promises promises() const override {
    return {.is_ordered = false,
            .least_key = devices_.front()->shortest_key(),
            .most_key = devices_.front()->longest_key()};
  }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<queue>(*this, depth);
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override {
    sent_before_ = sent();
    devices_.clear();
  }
  void open() override { open_with(false); }

  [[nodiscard]] pair_space space() override {
    pair_space all{.used_bytes = 0, .memory_bytes = 0, .medium_bytes = 0};
    for (const auto& d : devices_) {
      const stores::kv_stats s = d->stats();
      *all.used_bytes += s.used_bytes;
      *all.medium_bytes += s.medium_bytes;
    }
    return all;
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    stores::kv_stats sum;
    for (const auto& d : devices_) {
      const stores::kv_stats s = d->stats();
      sum.user_bytes += s.user_bytes;
      sum.record_bytes += s.record_bytes;
      sum.written_user += s.written_user;
      sum.written_moved += s.written_moved;
      sum.written_buckets += s.written_buckets;
      sum.collected += s.collected;
      sum.index_reads += s.index_reads;
      sum.index_changes += s.index_changes;
      sum.bloom_spared += s.bloom_spared;
    }
    return {{"user_bytes", sum.user_bytes},           {"record_bytes", sum.record_bytes},
            {"written_user", sum.written_user},       {"written_moved", sum.written_moved},
            {"written_buckets", sum.written_buckets}, {"collected", sum.collected},
            {"index_reads", sum.index_reads},         {"index_changes", sum.index_changes},
            {"bloom_spared", sum.bloom_spared}};
  }
  [[nodiscard]] std::uint64_t device_cpu_ns() override { return cpu_.ns(); }
  [[nodiscard]] std::optional<std::uint64_t> host_bytes() override { return sent(); }
  [[nodiscard]] std::optional<media::counts> counts() override {
    std::optional<media::counts> sum;
    for (const auto& m : media_)
      if (const auto one = counts_of(*m)) {
        if (!sum) sum.emplace();
        *sum += *one;
      }
    return sum;
  }
  void reset_counts() override {
    for (const auto& m : media_) reset_counts_of(*m);
  }
  [[nodiscard]] std::vector<std::string> remarks() override { return remarks_of(*media_.front()); }

 private:
  // Each has three roots.
  static constexpr std::size_t devices_of_a_medium = media::root_limit / 3;
  [[nodiscard]] Medium& medium_of(std::size_t device_number) noexcept {
    return *media_[device_number / devices_of_a_medium];
  }

  // A queue of each device.
  class queue final : public pair_queue {
   public:
    queue(kv_ssd_subject& of, unsigned depth) : of_(of) {
      for (const auto& d : of.devices_) queues_.push_back(std::make_unique<stores::kv_queue<device>>(*d, depth));
    }
    void put(std::string_view key, std::span<const std::byte> value, std::uint64_t tag) override {
      const std::size_t i = number_of(key);
      const in_device here(of_, i);
      check(queues_[i]->put(key, value, tag));
    }
    void get(std::string_view key, std::uint64_t tag) override {
      const std::size_t i = number_of(key);
      const in_device here(of_, i);
      check(queues_[i]->get(key, tag));
    }
    void erase(std::string_view key, std::uint64_t tag) override {
      const std::size_t i = number_of(key);
      const in_device here(of_, i);
      check(queues_[i]->erase(key, tag));
    }
    void scan(std::string_view /*from*/, unsigned /*most*/, std::uint64_t /*tag*/) override {
      throw error("a key-value SSD has no order of keys", "report this as a defect of the benchmark");
    }
    [[nodiscard]] std::size_t reap(std::span<pair_answer> answers, std::size_t at_least) override {
      if (queues_.size() == 1) return take_of(0, answers, at_least);
      std::size_t count = take_but(queues_.size(), answers);
      if (count != 0 || at_least == 0) return count;
      // One device with commands is waited for, each in its turn; the others go on meanwhile.
      for (std::size_t i = 0; i < queues_.size(); ++i) {
        next_ = (next_ + 1) % queues_.size();
        if (queues_[next_]->in_flight() == 0) continue;
        count = take_of(next_, answers, 1);
        return count + take_but(next_, answers.subspan(count));
      }
      return 0;
    }

   private:
    struct in_device {
      in_device(kv_ssd_subject& of, std::size_t number) noexcept
          : charged(!of.has_firmware_), announced(&of.medium_of(number)), cpu(of.cpu_) {}
      charged_time charged;
      announced_operation<Medium> announced;
      device_cpu::call cpu;
    };
    // The number of the device that has the key.
    [[nodiscard]] std::size_t number_of(std::string_view key) const noexcept {
      return queues_.size() == 1 ? 0 : hash_of_bytes(key.data(), key.size(), 0) % queues_.size();
    }
    static void check(bool started) {
      if (!started) throw error("a queue of kv_ssd took no operation", "report this as a defect of the benchmark");
    }
    // What is done, of all devices but one. Values are those of a queue's last call: there is one call of each.
    [[nodiscard]] std::size_t take_but(std::size_t but, std::span<pair_answer> answers) {
      std::size_t count = 0;
      for (std::size_t i = 0; i < queues_.size(); ++i)
        if (i != but && queues_[i]->in_flight() != 0) count += take_of(i, answers.subspan(count), 0);
      return count;
    }
    [[nodiscard]] std::size_t take_of(std::size_t i, std::span<pair_answer> answers, std::size_t at_least) {
      if (answers.empty()) return 0;
      std::array<stores::kv_completion, 64> done;
      const std::size_t count = [&] {
        const in_device here(of_, i);
        return queues_[i]->reap(std::span(done).first(std::min(answers.size(), done.size())), at_least);
      }();
      for (std::size_t n = 0; n < count; ++n)
        answers[n] = {.tag = done[n].tag, .error = done[n].error, .found = done[n].found, .value = done[n].value};
      return count;
    }

    kv_ssd_subject& of_;
    std::vector<std::unique_ptr<stores::kv_queue<device>>> queues_;
    std::size_t next_ = 0;
  };

  void open_with(bool format) {
    devices_.clear();
    options_.format = format;
    for (std::size_t i = 0; i < drives_.size(); ++i)
      devices_.push_back(std::unique_ptr<device>(
          new device(device::open(medium_of(i), *drives_[i], options_, "kv_ssd" + std::to_string(i)))));
  }
  [[nodiscard]] std::uint64_t sent() const {
    std::uint64_t sum = sent_before_;
    for (const auto& d : devices_) sum += d->stats().user_bytes;
    return sum;
  }

  std::vector<std::shared_ptr<Medium>> media_;
  std::vector<blocks::any_device*> drives_;
  // The drive's profile has the times of its firmware as a whole, on processors of its own: what a device does in this
  // process takes no other time then.
  bool has_firmware_;
  stores::kv_options options_;
  std::vector<std::unique_ptr<device>> devices_;
  std::uint64_t sent_before_ = 0;  // by devices that were closed
  device_cpu cpu_;
};

}  // namespace pmlab::store_bench
