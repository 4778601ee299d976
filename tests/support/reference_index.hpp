// An index that is right because it is simple. It tests the tests: every scenario must pass on it.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::tests {

// One unsorted doubly-ended list of one-line nodes in the medium, and a std::map over it in DRAM, under one mutex.
// Every change is one publication or one 8-byte store, persisted before the mutex is released: the result of a reader
// is answered is durable.
template <media::medium Medium>
class reference_index {
 public:
  static constexpr std::string_view layout_name = "reference";
  static constexpr std::uint64_t layout_version = 1;

  [[nodiscard]] static reference_index open(Medium& medium, std::string_view name = layout_name) {
    return reference_index(medium, name);
  }
  reference_index(const reference_index&) = delete;
  reference_index& operator=(const reference_index&) = delete;
  ~reference_index() = default;

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    const std::scoped_lock hold(mutex_);
    if (places_.contains(key)) return indexes::outcome::exists;
    return add(key, value);
  }

  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    const std::scoped_lock hold(mutex_);
    const auto place = places_.find(key);
    if (place == places_.end()) return indexes::outcome::absent;
    return replace(*place->second, value);
  }

  indexes::outcome upsert(indexes::key_type key, indexes::value_type value) {
    const std::scoped_lock hold(mutex_);
    const auto place = places_.find(key);
    return place == places_.end() ? add(key, value) : replace(*place->second, value);
  }

  indexes::outcome erase(indexes::key_type key) {
    const std::scoped_lock hold(mutex_);
    const auto place = places_.find(key);
    if (place == places_.end()) return indexes::outcome::absent;
    node& gone = *place->second;
    const media::pointer<node> next = gone.next.load(std::memory_order_relaxed);
    node* const before = resolve(gone.previous);
    typename Medium::publication change(medium_);
    media::publish_store(change, before == nullptr ? *head_ : before->next, next);
    // `previous` is DRAM's knowledge, kept in the node for convenience and found again at open: not persisted.
    change.release(&gone, sizeof(node));
    change.commit();
    if (node* const after = resolve(next); after != nullptr) after->previous = pointer_to(before);
    places_.erase(place);
    return indexes::outcome::erased;
  }

  std::optional<indexes::value_type> find(indexes::key_type key) {
    const std::scoped_lock hold(mutex_);
    return find_held(key);
  }

  void find_batch(std::span<const indexes::key_type> keys, std::span<std::optional<indexes::value_type>> values) {
    const std::scoped_lock hold(mutex_);
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find_held(keys[i]);
  }

  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    const std::scoped_lock hold(mutex_);
    std::size_t count = 0;
    for (auto place = places_.lower_bound(key); place != places_.end() && count < out.size(); ++place)
      out[count++] = {place->first, place->second->value.load(std::memory_order_relaxed)};
    return count;
  }

  template <class Visit>
  void for_each_in(indexes::key_type first, indexes::key_type last, Visit&& visit) {
    const std::scoped_lock hold(mutex_);
    for (auto place = places_.lower_bound(first); place != places_.end() && place->first <= last; ++place)
      visit(place->first, place->second->value.load(std::memory_order_relaxed));
  }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const node* n = head(); n != nullptr; n = resolve(n->next.load(std::memory_order_relaxed)))
      visit(n->key, n->value.load(std::memory_order_relaxed));
  }

  [[nodiscard]] std::uint64_t size() const { return places_.size(); }

  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats shape;
    for_each([&](indexes::key_type, indexes::value_type) { ++shape.entries; });
    shape.nodes = shape.entries;
    shape.depth = 1;
    shape.load_factor = 1;
    shape.medium_bytes = shape.nodes * sizeof(node);
    return shape;
  }

  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    std::map<indexes::key_type, int> seen;
    for (const node* n = head(); n != nullptr && report.ok(); n = resolve(n->next.load(std::memory_order_relaxed))) {
      ++report.entries;
      if (++seen[n->key] > 1) report.violations.push_back("key twice: " + std::to_string(n->key));
    }
    if (report.ok() && report.entries != places_.size()) report.violations.push_back("map and list differ");
    return report;
  }

 protected:
  reference_index(Medium& medium, std::string_view name) : medium_(medium) {
    head_ =
        reinterpret_cast<std::atomic<media::pointer<node>>*>(medium.named_root(name, layout_name, layout_version).word);
    node* before = nullptr;
    for (node* n = head(); n != nullptr; n = resolve(n->next.load(std::memory_order_relaxed))) {
      if (!places_.emplace(n->key, n).second)
        throw error("the reference index holds key " + std::to_string(n->key) + " twice", "make it again");
      n->previous = pointer_to(before);
      before = n;
    }
  }

 private:
  struct alignas(media::cache_line_bytes) node {
    node(indexes::key_type k, indexes::value_type v, media::pointer<node> n) : key(k), value(v), next(n) {}
    indexes::key_type key;
    std::atomic<indexes::value_type> value;
    std::atomic<media::pointer<node>> next;
    media::pointer<node> previous;
  };

  [[nodiscard]] node* resolve(media::pointer<node> p) const { return p ? medium_.resolve(p) : nullptr; }
  [[nodiscard]] node* head() const { return resolve(head_->load(std::memory_order_relaxed)); }

  [[nodiscard]] media::pointer<node> pointer_to(node* before) const {
    return before == nullptr ? media::pointer<node>() : medium_.locate(before);
  }

  // The thread holds the mutex.
  std::optional<indexes::value_type> find_held(indexes::key_type key) const {
    const auto place = places_.find(key);
    if (place == places_.end()) return std::nullopt;
    medium_.annotate_read(place->second, sizeof(node));
    return place->second->value.load(std::memory_order_relaxed);
  }

  indexes::outcome add(indexes::key_type key, indexes::value_type value) {
    typename Medium::publication change(medium_);
    node* const old_head = head();
    const media::pointer<node> old_head_pointer = head_->load(std::memory_order_relaxed);
    node* const fresh = media::create<node>(change, key, value, old_head_pointer);
    if (fresh == nullptr) return indexes::outcome::full;
    media::persist(medium_, *fresh);
    const media::pointer<node> fresh_pointer = medium_.locate(fresh);
    media::publish_store(change, *head_, fresh_pointer);
    change.commit();
    if (old_head != nullptr) old_head->previous = fresh_pointer;
    places_.emplace(key, fresh);
    return indexes::outcome::inserted;
  }

  indexes::outcome replace(node& n, indexes::value_type value) {
    n.value.store(value, std::memory_order_release);
    media::persist(medium_, n);
    return indexes::outcome::updated;
  }

  Medium& medium_;
  std::atomic<media::pointer<node>>* head_ = nullptr;
  std::map<indexes::key_type, node*> places_;
  std::mutex mutex_;
};

}  // namespace pmlab::tests
