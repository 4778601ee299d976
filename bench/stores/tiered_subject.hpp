// The tiered store as a store of pairs: on a drive, or a staging and a capacity drive; its newest changes in DRAM and a
// log, or in persistent memory.
//
// Without a staging drive all of it is on the capacity drive. With --loss-ms 0 and a log each change waits for its
// flush.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/subject_medium.hpp"
#include "bench/stores/waiting_pair_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {

// The placement that --place names. Throws pmlab::error, with the nearest one, for a name that is not known.
[[nodiscard]] inline stores::placement placement_of(const std::string& name, bool has_staging) {
  using stores::placement;
  if (name.empty()) return has_staging ? placement::staging_max_capacity : placement::capacity_only;
  const auto& names = stores::placement_names;
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<placement>(at - names.begin());
  throw error(fmt::format("there is no place '{}' of tiered's log, keys and values", name),
              fmt::format("did you mean {}? The places are {}", nearest(name, names), fmt::join(names, ", ")));
}

// `Memory`: as tiered has it. `Medium`: its medium; void: none.
template <class Memory, class Medium = void>
class tiered_subject final : public pair_subject {
  using store = stores::tiered<blocks::any_device, blocks::emulated_clock, Memory>;
  using medium_pointer = std::shared_ptr<Medium>;

 public:
  tiered_subject(const pair_setup& setup, const pair_drives& drives, medium_pointer medium = nullptr)
      : setup_(setup), medium_(std::move(medium)) {
    if (drives.main.size() != 1)
      throw error("tiered has one capacity drive, and the run has " + std::to_string(drives.main.size()),
                  "leave --devices out");
    capacity_ = drives.main.front();
    staging_ = drives.staging;
    open_with(true);
  }

  [[nodiscard]] pair_promises promises() const override {
    const bool bounded = !is_durable_at_once() && !has_memory;
    return {.is_ordered = true,
            .loss_ms = bounded ? static_cast<std::uint64_t>(setup_.loss_ms) : 0,
            .least_key = 1,
            .most_key = 1344};
  }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(*this), depth);
  }
  // Its threads tell no other sign of having nothing to do than that they do nothing.
  void settle() override {
    using namespace std::chrono_literals;
    constexpr unsigned enough = 5;
    open_->sync();
    stores::tiered_stats last = open_->stats();
    for (unsigned quiet = 0; quiet < enough && last.background_failure.empty();) {
      std::this_thread::sleep_for(10ms);
      const stores::tiered_stats now = open_->stats();
      quiet = work_of(now) == work_of(last) ? quiet + 1 : 0;
      last = now;
    }
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override { open_.reset(); }
  void open() override { open_with(false); }

  [[nodiscard]] pair_space space() override {
    const stores::tiered_stats s = open_->stats();
    pair_space all{.used_bytes = s.staging_used_bytes + s.capacity_used_bytes,
                   .memory_bytes = s.memory_bytes,
                   .medium_bytes = std::nullopt};
    if (has_memory) all.medium_bytes = s.medium_bytes;
    return all;
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override { return statistics_of(open_->stats()); }
  [[nodiscard]] std::optional<media::counts> counts() override {
    if constexpr (has_memory) return counts_of(*medium_);
    return std::nullopt;
  }
  void reset_counts() override {
    if constexpr (has_memory) reset_counts_of(*medium_);
  }
  [[nodiscard]] std::vector<std::string> remarks() override {
    std::vector<std::string> all;
    if constexpr (has_memory) all = remarks_of(*medium_);
    if (open_ == nullptr) return all;
    if (const std::string failure = open_->stats().background_failure; !failure.empty())
      all.push_back("a thread of tiered failed: " + failure);
    return all;
  }

 private:
  static constexpr bool has_memory = !std::is_void_v<Medium>;

  // Grows while threads of the store work.
  [[nodiscard]] static std::uint64_t work_of(const stores::tiered_stats& s) noexcept {
    return s.ingests + s.spills + s.compactions + s.splits + s.spilled_value_bytes + s.compacted_value_bytes;
  }

  // The calls of one thread.
  class session {
   public:
    using found_value = std::string;
    explicit session(tiered_subject& of) : of_(&of), table_(of.open_->table(table_name)) {}

    [[nodiscard]] std::errc put(std::string_view key, std::string_view value) {
      return change([&] {
        if (of_->is_durable_at_once())
          table_.put_synced(key, value);
        else
          table_.put(key, value);
      });
    }
    [[nodiscard]] std::errc erase(std::string_view key) {
      return change([&] {
        table_.erase(key);
        if (of_->is_durable_at_once()) of_->open_->sync();
      });
    }
    void get(std::string_view key, found_value& found, pair_answer& answer) {
      const announced_operation<Medium> announced(of_->medium_.get());
      std::optional<std::string> value = table_.get(key);
      answer.found = value.has_value();
      if (!value) return;
      found = std::move(*value);
      answer.value = std::as_bytes(std::span(found));
    }
    [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& pairs) {
      const announced_operation<Medium> announced(of_->medium_.get());
      auto at = table_.cursor({.from = from, .most = most});
      while (at.next()) pairs.add(at.key(), at.value());
      return {};
    }

   private:
    template <class Change>
    [[nodiscard]] std::errc change(Change&& make) {
      const announced_operation<Medium> announced(of_->medium_.get());
      try {
        make();
        return {};
      } catch (const stores::tiered_full&) {
        return std::errc::no_space_on_device;
      }
    }
    tiered_subject* of_;
    typename store::table_handle table_;
  };

  static constexpr std::string_view table_name = "bench";

  [[nodiscard]] bool is_durable_at_once() const noexcept { return setup_.loss_ms == 0 && !has_memory; }

  // In a small store, segments and leaves are small, too: otherwise all of its data would be in a few of them. `bytes`:
  // of its memory, or of its drives.
  [[nodiscard]] std::uint64_t segment_for(std::uint64_t bytes, std::uint64_t usual) const noexcept {
    constexpr std::uint64_t least = std::uint64_t{64} << 10;
    const std::uint64_t of_value = std::bit_ceil(std::uint64_t{4} * std::max<std::uint64_t>(setup_.value_bytes, 1));
    return std::min(usual, std::max({std::bit_floor(bytes / 32), least, of_value}));
  }

  void open_with(bool format) {
    open_.reset();
    stores::tiered_options o;
    o.place = placement_of(setup_.place, staging_ != nullptr);
    if (setup_.loss_ms != 0) o.loss.at_most = std::chrono::nanoseconds(static_cast<std::int64_t>(setup_.loss_ms * 1e6));
    if (setup_.memory_bytes != 0) {
      o.memory_limit = setup_.memory_bytes;
      o.segment_bytes = segment_for(setup_.memory_bytes, o.segment_bytes);
    }
    std::uint64_t drives_bytes = capacity_->shape().bytes();
    if (staging_ != nullptr) drives_bytes += staging_->shape().bytes();
    o.segment_bytes = segment_for(drives_bytes, o.segment_bytes);
    o.cache_bytes = setup_.cache_bytes;
    o.format = format;
    stores::tiered_drives<blocks::any_device, Memory> drives{.capacity = *capacity_};
    if (staging_ != nullptr) drives.staging = *staging_;
    if constexpr (has_memory) drives.memory = medium_.get();
    open_ = store::open(drives, o);
  }

  [[nodiscard]] std::vector<store_statistic> statistics_of(const stores::tiered_stats& s) const {
    std::vector<store_statistic> all{{"ingests", s.ingests},
                                     {"spills", s.spills},
                                     {"compactions", s.compactions},
                                     {"splits", s.splits},
                                     {"spilled_value_bytes", s.spilled_value_bytes},
                                     {"compacted_value_bytes", s.compacted_value_bytes}};
    if (setup_.cache_bytes == 0) return all;
    all.emplace_back("cache_hits", s.page_hits + s.value_hits);
    all.emplace_back("cache_misses", s.page_misses + s.value_misses);
    return all;
  }

  pair_setup setup_;
  medium_pointer medium_;
  blocks::any_device* staging_ = nullptr;
  blocks::any_device* capacity_ = nullptr;
  std::unique_ptr<store> open_;
};

}  // namespace pmlab::store_bench
