// Walks the keys of one table in order, over all sources of versions, as they were at one moment.
#pragma once

#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/leaf.hpp>
#include <pmlab/stores/tiered/no_memory.hpp>
#include <pmlab/stores/tiered/value_run.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores {

// The direction of a cursor.
enum class direction : std::uint8_t { forward, backward };

namespace detail::tiered {

// All that a reader needs: immutable, except that the active memtable grows.
template <blocks::device Device, class Memory = no_memory>
struct tree_view {
  std::shared_ptr<typename Memory::table> active;
  std::vector<std::shared_ptr<typename Memory::table>> frozen{};  // newest first
  std::vector<std::shared_ptr<const key_set<Device>>> sets{};     // sets of the root, newest first
  leaf_list<Device> leaves{};
  std::uint64_t set_memory = 0;     // DRAM of all sets
  std::uint64_t data_bytes = 0;     // keys and values of all sets
  std::uint64_t root_keys = 0;      // bytes of the keys of the largest set of the root
  std::uint64_t root_entries = 0;   // entries of the largest set of the root
  class_counts spare{};             // segments that a spill and a compaction may need
  class_counts spare_to_compact{};  // segments that a compaction alone may need
  // Segments of both drives that the keys of one merge of a leaf may need, and those that the spill of one set of the
  // root may need.
  std::uint32_t kept_to_merge = 0;
  std::uint32_t kept_to_spill = 0;
};

template <blocks::device Device, class Memory = no_memory>
class cursor_body {
  // A source of any kind.
  class source {
   public:
    source() = default;
    source(const source&) = delete;
    source& operator=(const source&) = delete;
    virtual ~source() = default;
    [[nodiscard]] virtual std::optional<found_version> at_least(const version_name& name) = 0;
    [[nodiscard]] virtual std::optional<found_version> next() = 0;
    [[nodiscard]] virtual std::optional<found_version> less(const version_name& name) = 0;
  };
  template <class Source>
  class source_of final : public source {
   public:
    explicit source_of(Source inner) : inner_(std::move(inner)) {}
    std::optional<found_version> at_least(const version_name& name) override { return inner_.at_least(name); }
    std::optional<found_version> next() override { return inner_.next(); }
    std::optional<found_version> less(const version_name& name) override { return inner_.less(name); }

   private:
    Source inner_;
  };

 public:
  cursor_body(const set_context<Device>& context, std::shared_ptr<const tree_view<Device, Memory>> view,
              std::uint64_t sequence, std::uint16_t table, std::string_view from, std::optional<std::string_view> to,
              direction way)
      : values_(context), view_(std::move(view)), sequence_(sequence), table_(table), from_(from), way_(way) {
    if (to) to_ = std::string(*to);
    add(typename Memory::source(view_->active));
    for (const auto& m : view_->frozen) add(typename Memory::source(m));
    for (const auto& s : view_->sets) add(set_source<Device>(s));
    add(leaf_source<Device>(view_->leaves));
  }

  [[nodiscard]] bool next() {
    if (now_ + 1 < ahead_.size()) {
      ++now_;
    } else {
      look_ahead();
      if (ahead_.empty()) return false;
    }
    key_ = std::move(ahead_[now_].version.key);
    values_.read(ahead_[now_], value_);
    return true;
  }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] const std::string& value() const noexcept { return value_; }

 private:
  struct part {
    std::unique_ptr<source> from;
    std::optional<found_version> found{};
    bool is_old = true;     // the cursor has passed it
    bool can_step = false;  // the source's last result is `found`
  };
  template <class Source>
  void add(Source s) {
    parts_.push_back({std::make_unique<source_of<Source>>(std::move(s))});
  }

  // Finds the next pairs: each time twice as many, so that a short walk reads few values in vain.
  void look_ahead() {
    constexpr std::uint64_t enough_bytes = std::uint64_t{256} << 10;
    const std::size_t count = std::clamp<std::size_t>(2 * ahead_.size(), 1, value_run<Device>::most_ahead);
    ahead_.reserve(count);
    ahead_.clear();
    now_ = 0;
    try {
      std::uint64_t bytes = 0;
      for (found_version v; ahead_.size() < count && bytes < enough_bytes && step(v); bytes += v.value_bytes)
        ahead_.push_back({{std::move(v)}});
    } catch (const std::exception&) {  // the pairs before come first; then the step is tried again
      if (ahead_.empty()) throw;
    }
    values_.prepare(ahead_);
  }
  // To the next pair, in `into`; false: there is none. If it throws, the next call tries the same step.
  [[nodiscard]] bool step(found_version& into) {
    for (;;) {
      part* const chosen = choose();
      if (chosen == nullptr) return false;
      const std::string& key = chosen->found->key;
      if (way_ == direction::forward ? to_ && key >= *to_ : key < from_) return false;
      at_ = key;
      for (part& p : parts_)
        if (p.found && p.found->key == at_) p.is_old = true;
      if (chosen->found->kind == change_kind::erase) continue;
      into = std::move(*chosen->found);
      return true;
    }
  }
  // The part with the nearest key; if several have it, the newest one.
  [[nodiscard]] part* choose() {
    part* best = nullptr;
    for (part& p : parts_) {
      if (p.is_old) p.found = fetch(p);
      p.is_old = false;
      if (!p.found) continue;
      if (best == nullptr ||
          (way_ == direction::forward ? p.found->key < best->found->key : p.found->key > best->found->key))
        best = &p;
    }
    return best;
  }
  [[nodiscard]] std::optional<found_version> fetch(part& p) const {
    source& s = *p.from;
    if (way_ == direction::forward) {
      // Where a step fails, the source is searched again by the next call.
      auto found = std::exchange(p.can_step, false)
                       ? key_behind(s, *at_, table_, sequence_)
                       : next_key(s, at_ ? version_name{table_, *at_, 0} : version_name{table_, from_, newest}, table_,
                                  sequence_);
      p.can_step = found.has_value();
      return found;
    }
    const version_name end =
        to_ ? version_name{table_, *to_, newest} : version_name{static_cast<std::uint16_t>(table_ + 1), {}, newest};
    return previous_key(s, at_ ? version_name{table_, *at_, newest} : end, table_, sequence_);
  }

  value_run<Device> values_;
  std::shared_ptr<const tree_view<Device, Memory>> view_;
  std::uint64_t sequence_;
  std::uint16_t table_;
  std::string from_;
  std::optional<std::string> to_;
  direction way_;
  std::vector<part> parts_;
  std::optional<std::string> at_;  // the last key of `ahead_`, or of an erasure behind it
  std::vector<version_ahead> ahead_;
  std::size_t now_ = 0;  // the one of `ahead_` where the cursor is
  std::string key_;      // its key
  std::string value_;
};

}  // namespace detail::tiered
}  // namespace pmlab::stores
