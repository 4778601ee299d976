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
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

// What a cursor is asked for.
struct cursor_range {
  std::uint16_t table = 0;
  std::string_view from{};
  std::optional<std::string_view> to{};
  direction way = direction::forward;
  std::size_t most = ~std::size_t{0};  // pairs
};

template <blocks::device Device, class Memory = no_memory>
class cursor_body {
  // A source of any kind (versions.hpp).
  class source {
   public:
    source() = default;
    source(const source&) = delete;
    source& operator=(const source&) = delete;
    virtual ~source() = default;
    [[nodiscard]] virtual bool seek(const version_name& name) = 0;
    [[nodiscard]] virtual bool step() = 0;
    [[nodiscard]] virtual version_name here() const = 0;
    virtual void take(found_version& into) const = 0;
    [[nodiscard]] virtual std::optional<found_version> less(const version_name& name) = 0;
    // Adds the pages that seek(name) needs.
    virtual void want(const version_name& name, page_wishes<Device>& wishes) = 0;
  };
  template <class Source>
  class source_of final : public source {
   public:
    explicit source_of(Source inner) : inner_(std::move(inner)) {}
    bool seek(const version_name& name) override { return inner_.seek(name); }
    bool step() override { return inner_.step(); }
    [[nodiscard]] version_name here() const override { return inner_.here(); }
    void take(found_version& into) const override { inner_.take(into); }
    std::optional<found_version> less(const version_name& name) override { return inner_.less(name); }
    void want([[maybe_unused]] const version_name& name, [[maybe_unused]] page_wishes<Device>& wishes) override {
      if constexpr (std::is_same_v<Source, set_source<Device>>)
        inner_.want(name, 1, wishes);
      else if constexpr (std::is_same_v<Source, leaf_source<Device>>)
        inner_.want(name, wishes);
    }

   private:
    Source inner_;
  };

 public:
  cursor_body(const set_context<Device>& context, std::shared_ptr<const tree_view<Device, Memory>> view,
              std::uint64_t sequence, const cursor_range& range)
      : values_(context),
        view_(std::move(view)),
        sequence_(sequence),
        table_(range.table),
        from_(range.from),
        way_(range.way),
        left_(range.most) {
    if (range.to) to_ = std::string(*range.to);
    const std::size_t count = 3 + view_->frozen.size() + view_->sets.size();
    parts_.reserve(count);
    in_order_.reserve(count);
    passed_.reserve(count);
    add(typename Memory::source(view_->active));
    for (const auto& m : view_->frozen) add(typename Memory::source(m));
    for (const auto& s : view_->sets) add(set_source<Device>(s));
    add(leaf_source<Device>(view_->leaves));
  }

  [[nodiscard]] bool next() {
    if (now_ + 1 < filled_) {
      ++now_;
    } else {
      look_ahead();
      if (filled_ == 0) return false;
    }
    key_.swap(ahead_[now_].version.key);
    values_.read(ahead_[now_], value_);
    return true;
  }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] const std::string& value() const noexcept { return value_; }

 private:
  struct part {
    std::unique_ptr<source> from;
    version_name head{};                   // forward: where it stands, if it is one of in_order_
    bool can_step = false;                 // forward: it stands at `at_`
    std::optional<found_version> found{};  // backward
    bool is_old = true;                    // backward: the cursor has passed it
  };
  template <class Source>
  void add(Source s) {
    parts_.emplace_back().from = std::make_unique<source_of<Source>>(std::move(s));
    if (way_ == direction::forward) passed_.push_back(&parts_.back());
  }

  // Finds the next pairs: as many as the caller has said, or each time twice as many, so that a short walk reads few
  // values in vain.
  void look_ahead() {
    constexpr std::size_t first = 4;
    const bool is_limited = left_ != ~std::size_t{0};
    const std::size_t count = is_limited ? std::min(left_, value_run<Device>::most_ahead)
                                         : std::clamp<std::size_t>(2 * filled_, first, value_run<Device>::most_ahead);
    // All of them: the next ones may be fewer.
    for (version_ahead& one : std::span(ahead_).first(filled_)) one.release();
    filled_ = 0;
    now_ = 0;
    if (ahead_.size() < count) ahead_.resize(count);
    try {
      std::uint64_t bytes = 0;
      for (; filled_ < count && bytes < value_run<Device>::most_bytes_ahead && step(ahead_[filled_].version); ++filled_)
        bytes += values_.bytes_for(ahead_[filled_].version);
    } catch (const std::exception&) {  // the pairs before come first; then the step is tried again
      if (filled_ == 0) throw;
    }
    if (is_limited) left_ -= filled_;
    values_.prepare(std::span(ahead_).first(filled_));
  }
  // To the next pair, in `into`; false: there is none. If it throws, the next call tries the same step.
  [[nodiscard]] bool step(found_version& into) {
    return way_ == direction::forward ? step_forward(into) : step_backward(into);
  }

  [[nodiscard]] bool step_forward(found_version& into) {
    for (;;) {
      stand_behind();
      if (in_order_.empty()) return false;
      const part& chosen = *in_order_.front();
      if (to_ && chosen.head.key >= *to_) return false;
      chosen.from->take(into);
      at_ = into.key;
      has_begun_ = true;
      // The newest version of a key is that of the first source; the others are passed with it.
      std::size_t same = 0;
      while (same < in_order_.size() && in_order_[same]->head.key == at_) passed_.push_back(in_order_[same++]);
      in_order_.erase(in_order_.begin(), in_order_.begin() + static_cast<std::ptrdiff_t>(same));
      if (into.kind != change_kind::erase) return true;
    }
  }
  // All sources stand behind `at_`, or at the begin. Where that fails, the source is searched again by the next call.
  void stand_behind() {
    const auto begin = [&] { return has_begun_ ? version_name{table_, at_, 0} : version_name{table_, from_, newest}; };
    if (!has_begun_ && passed_.size() > 1) {
      page_wishes<Device> wishes;
      for (part* const p : passed_) p->from->want(begin(), wishes);
      wishes.read();
    }
    while (!passed_.empty()) {
      part& p = *passed_.back();
      const bool any = std::exchange(p.can_step, false) ? to_key_behind(*p.from, at_, table_, sequence_)
                                                        : to_key_from(*p.from, begin(), table_, sequence_);
      p.can_step = any;
      passed_.pop_back();
      if (any) enter(p);
    }
  }
  // Among the sources in the order of their keys; of those with the same key, the newest comes first.
  void enter(part& p) noexcept {
    p.head = p.from->here();
    auto at = in_order_.begin();
    for (; at != in_order_.end(); ++at) {
      const int order = p.head.key.compare((*at)->head.key);
      if (order < 0 || (order == 0 && &p < *at)) break;
    }
    in_order_.insert(at, &p);
  }

  [[nodiscard]] bool step_backward(found_version& into) {
    for (;;) {
      part* const chosen = last_part();
      if (chosen == nullptr) return false;
      const std::string& key = chosen->found->key;
      if (key < from_) return false;
      at_ = key;
      has_begun_ = true;
      for (part& p : parts_)
        if (p.found && p.found->key == at_) p.is_old = true;
      if (chosen->found->kind == change_kind::erase) continue;
      into = std::move(*chosen->found);
      return true;
    }
  }
  // The part with the last key; if several have it, the newest one.
  [[nodiscard]] part* last_part() {
    part* best = nullptr;
    for (part& p : parts_) {
      if (p.is_old) p.found = fetch_before(p);
      p.is_old = false;
      if (p.found && (best == nullptr || p.found->key > best->found->key)) best = &p;
    }
    return best;
  }
  [[nodiscard]] std::optional<found_version> fetch_before(part& p) const {
    const version_name end =
        to_ ? version_name{table_, *to_, newest} : version_name{static_cast<std::uint16_t>(table_ + 1), {}, newest};
    return previous_key(*p.from, has_begun_ ? version_name{table_, at_, newest} : end, table_, sequence_);
  }

  value_run<Device> values_;
  std::shared_ptr<const tree_view<Device, Memory>> view_;
  std::uint64_t sequence_;
  std::uint16_t table_;
  std::string from_;
  std::optional<std::string> to_;
  direction way_;
  std::size_t left_;  // pairs that the cursor may still look for
  std::vector<part> parts_;
  std::vector<part*> in_order_;  // forward: sources that stand at a version
  std::vector<part*> passed_;    // forward: sources that have to find the next one
  bool has_begun_ = false;
  std::string at_;  // the last key of `ahead_`, or of an erasure behind it
  std::vector<version_ahead> ahead_;
  std::size_t filled_ = 0;
  std::size_t now_ = 0;  // the one of `ahead_` where the cursor is
  std::string key_;      // its key
  std::string value_;
};

}  // namespace detail::tiered
}  // namespace pmlab::stores
