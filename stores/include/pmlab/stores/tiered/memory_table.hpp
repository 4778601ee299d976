// The versions of a range of sequences in persistent memory: a memtable, as its readers know it.
//
// All of a store's are in one index (version_index.hpp). It ends when no reader has it; if a set has its versions, they
// leave the index then.
#pragma once

#include <pmlab/stores/tiered/version_index.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace pmlab::stores::detail::tiered {

template <class Versions>
class memory_table {
 public:
  // The versions behind `low`.
  memory_table(Versions& versions, std::uint64_t low) : versions_(versions), low_(low), last_(low) {}
  memory_table(const memory_table&) = delete;
  memory_table& operator=(const memory_table&) = delete;
  ~memory_table() {
    if (!is_elsewhere_.load(std::memory_order_acquire)) return;
    range_.front() = {low_, last()};
    versions_.retire(std::move(range_));
  }

  // These are in the index, the last one is `last`. REQUIRES: one thread at a time.
  void inserted(std::span<const change> changes, std::uint64_t last) noexcept {
    std::size_t keys = 0;
    std::size_t values = 0;
    std::size_t medium = 0;
    for (const change& c : changes) {
      keys += c.key.size() + 32;
      values += c.value.size();
      medium += Versions::medium_bytes_for(c);
    }
    key_bytes_.fetch_add(keys, std::memory_order_relaxed);
    value_bytes_.fetch_add(values, std::memory_order_relaxed);
    medium_bytes_.fetch_add(medium, std::memory_order_relaxed);
    last_.store(last, std::memory_order_release);
  }
  // Sets the last sequence while the store is opened.
  void found(std::uint64_t last) noexcept { last_.store(last, std::memory_order_release); }
  // A durable set has all of its versions.
  void is_elsewhere() noexcept { is_elsewhere_.store(true, std::memory_order_release); }

  // Versions behind the last one are not there yet, or of a batch that will be taken back.
  [[nodiscard]] std::optional<found_version> at_least(const version_name& name) const {
    return versions_.at_least(name, {low_, last()});
  }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) const {
    return versions_.less(name, {low_, last()});
  }

  // The bytes of the medium, about.
  [[nodiscard]] std::size_t medium_bytes() const noexcept { return medium_bytes_.load(std::memory_order_relaxed); }
  // The bytes, about, that its keys need in the pages of a set, without space that pages waste.
  [[nodiscard]] std::size_t key_bytes() const noexcept { return key_bytes_.load(std::memory_order_relaxed); }
  // The bytes of values.
  [[nodiscard]] std::size_t value_bytes() const noexcept { return value_bytes_.load(std::memory_order_relaxed); }
  // The greatest sequence; `low`: it is empty.
  [[nodiscard]] std::uint64_t last() const noexcept { return last_.load(std::memory_order_acquire); }
  [[nodiscard]] bool empty() const noexcept { return last() == low_; }

 private:
  Versions& versions_;
  const std::uint64_t low_;
  std::atomic<std::uint64_t> last_;
  std::atomic<std::size_t> key_bytes_{0};
  std::atomic<std::size_t> value_bytes_{0};
  std::atomic<std::size_t> medium_bytes_{0};
  std::atomic<bool> is_elsewhere_{false};
  std::list<sequence_range> range_{1};  // to be retired: its end must not need memory
};

// The versions of one, for searches.
template <class Table>
class memory_source {
 public:
  explicit memory_source(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  [[nodiscard]] bool seek(const version_name& name) {
    at_ = table_->at_least(name);
    return at_.has_value();
  }
  // The order of names: newer versions of a key come first, so the one behind has a smaller sequence or a greater key.
  [[nodiscard]] bool step() { return seek({at_->table, at_->key, at_->sequence - 1}); }
  [[nodiscard]] version_name here() const noexcept { return at_->name(); }
  void take(found_version& into) const { into = *at_; }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) const { return table_->less(name); }

 private:
  std::shared_ptr<const Table> table_;
  std::optional<found_version> at_;  // the version where it stands
};

}  // namespace pmlab::stores::detail::tiered
