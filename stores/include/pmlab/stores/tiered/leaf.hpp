// Leaves: the keys of the store in ranges, each with sets of its own. Ranges are disjoint, and leave nothing out.
#pragma once

#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// The keys from its bound to the next leaf's bound.
template <blocks::device Device>
struct leaf {
  std::uint16_t table = 0;
  std::string bound{};
  std::vector<std::shared_ptr<const key_set<Device>>> sets{};  // newest first
  // The merge that made its only set had these; volatile.
  std::uint64_t merged_at = 0;          // the horizon; 0: unknown
  std::uint32_t garbage_percent = 100;  // segments with so much garbage were given up; 100: none were

  // Before all versions of its range.
  [[nodiscard]] version_name begin() const noexcept { return {table, bound, newest}; }
  // The bytes of keys and values that its sets refer to.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t all = 0;
    for (const auto& s : sets) all += s->bytes();
    return all;
  }
  // About the bytes of values that newer ones replaced.
  [[nodiscard]] std::uint64_t covered() const noexcept {
    std::uint64_t all = 0;
    for (const auto& s : sets) all += s->described().covers;
    return all;
  }
  [[nodiscard]] std::uint64_t value_bytes() const noexcept {
    std::uint64_t all = 0;
    for (const auto& s : sets) all += s->value_bytes();
    return all;
  }
};

template <blocks::device Device>
using leaf_list = std::vector<std::shared_ptr<const leaf<Device>>>;

// The number of the leaf whose range has the place `name`. REQUIRES: the first leaf begins before all keys.
template <blocks::device Device>
[[nodiscard]] std::size_t leaf_of(const leaf_list<Device>& leaves, const version_name& name) {
  const auto behind =
      std::partition_point(leaves.begin(), leaves.end(), [&](const auto& l) { return !(name < l->begin()); });
  return behind == leaves.begin() ? 0 : static_cast<std::size_t>(behind - leaves.begin() - 1);
}

// The versions of all leaves in order: a source (versions.hpp).
template <blocks::device Device>
class leaf_source {
 public:
  // `leaves` outlives it.
  explicit leaf_source(const leaf_list<Device>& leaves) : leaves_(&leaves) {}

  [[nodiscard]] bool seek(const version_name& name) {
    least_ = nullptr;
    const std::size_t first = leaf_of(*leaves_, name);
    open(first);
    for (part& p : parts_) p.stand(p.source.seek(name));
    return stand_at_least(first);
  }
  [[nodiscard]] bool step() {
    least_->stand(least_->source.step());
    return stand_at_least(*opened_);
  }
  [[nodiscard]] version_name here() const noexcept { return *least_->head; }
  void take(found_version& into) const { least_->source.take(into); }
  [[nodiscard]] std::optional<found_version> less(const version_name& name) {
    for (std::size_t i = leaf_of(*leaves_, name) + 1; i-- > 0;) {
      open(i);
      std::optional<found_version> greatest;
      for (part& p : parts_)
        if (auto v = p.source.less(name); v && (!greatest || greatest->name() < v->name())) greatest = std::move(v);
      if (greatest) return greatest;
    }
    return std::nullopt;
  }
  // Adds the pages that seek(name) needs.
  void want(const version_name& name, page_wishes<Device>& wishes) {
    open(leaf_of(*leaves_, name));
    want_here(name, wishes);
  }

 private:
  using part = set_part<Device>;

  void open(std::size_t number) {
    if (opened_ == number) return;
    opened_.reset();  // a lack of memory below leaves a part of the sets
    least_ = nullptr;
    parts_.clear();
    for (const auto& s : (*leaves_)[number]->sets) parts_.push_back({set_source<Device>(s)});
    opened_ = number;
  }
  // A walk needs two pages of the set that has most of the keys, mostly, and one of the others.
  void want_here(const version_name& name, page_wishes<Device>& wishes) {
    std::uint64_t most = 0;
    for (const part& p : parts_) most = std::max(most, p.source.of().described().pages);
    for (part& p : parts_) p.source.want(name, p.source.of().described().pages == most ? 2 : 1, wishes);
  }
  // At the least of the heads, or of those of the first leaf behind `number` that has versions. False: there is none.
  [[nodiscard]] bool stand_at_least(std::size_t number) {
    for (;;) {
      least_ = part_of_least(parts_);
      if (least_ != nullptr) return true;
      if (++number >= leaves_->size()) return false;
      open(number);
      const version_name begin = (*leaves_)[number]->begin();
      page_wishes<Device> wishes;
      want_here(begin, wishes);
      wishes.read();
      for (part& p : parts_) p.stand(p.source.seek(begin));
    }
  }

  const leaf_list<Device>* leaves_;
  std::optional<std::size_t> opened_;
  std::vector<part> parts_;
  part* least_ = nullptr;  // the part where it stands
};

}  // namespace pmlab::stores::detail::tiered
