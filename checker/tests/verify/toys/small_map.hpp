// The map around a toy of the scoreboard. The toy is a `Body`: a structure in persistent memory that finds, adds,
// changes and removes one key. One mutex for all operations.
//
//   struct area;                                        // its root object, all words
//   Body(Medium&, area&, std::mutex&)                   // recovery; the mutex is held in all that follow
//   std::optional<std::uint64_t> find(key)
//   bool add(key, value)                                // of an absent key; false: full
//   void set(key, value), void take(key)                // of a present key
//   void for_each(function)
//   std::uint64_t held()                                // bytes beyond the root object
//   static bool root_is_durable()                       // false leaves the flush of the new root object out
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

// 0: the toy is correct. Read from PMLAB_MUTATION (mutations/selected.cpp).
extern "C" const int pmlab_mutation;

namespace pmlab::toys {

using indexes::outcome;
using word = std::atomic<std::uint64_t>;

[[nodiscard]] inline bool has(int defect) noexcept { return pmlab_mutation == defect; }

// Stores in the order of the program.
inline void put(word& w, std::uint64_t value) noexcept { w.store(value, std::memory_order_release); }
[[nodiscard]] inline std::uint64_t get(const word& w) noexcept { return w.load(std::memory_order_acquire); }

[[nodiscard]] inline std::uint64_t hash_of(std::uint64_t key, std::uint64_t seed = 0) noexcept {
  std::uint64_t h = (key ^ (seed * 0xd6e8feb86659fd93U)) * 0x9e3779b97f4a7c15U;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93U;
  return h ^ (h >> 29);
}

// `Body` has a name, too.
template <media::medium Medium, template <class> class Body>
class small_map {
 public:
  using body_type = Body<Medium>;
  using area = typename body_type::area;
  static constexpr std::string_view layout_name = body_type::name;
  static constexpr std::uint64_t layout_version = 1;

  static small_map open(Medium& medium, std::string_view name = layout_name) { return small_map(medium, name); }
  small_map(const small_map&) = delete;
  small_map& operator=(const small_map&) = delete;
  ~small_map() = default;

  outcome insert(std::uint64_t key, std::uint64_t value) { return put_in(key, value, false); }
  outcome upsert(std::uint64_t key, std::uint64_t value) { return put_in(key, value, true); }
  outcome update(std::uint64_t key, std::uint64_t value) {
    const std::unique_lock guard(mutex_);
    if (!body_.find(key)) return outcome::absent;
    body_.set(key, value);
    return outcome::updated;
  }
  outcome erase(std::uint64_t key) {
    const std::unique_lock guard(mutex_);
    if (!body_.find(key)) return outcome::absent;
    body_.take(key);
    return outcome::erased;
  }
  std::optional<std::uint64_t> find(std::uint64_t key) {
    const std::unique_lock guard(mutex_);
    return body_.find(key);
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }
  template <class Function>
  void for_each(Function&& function) const {
    body_.for_each(function);
  }
  [[nodiscard]] std::uint64_t size() const { return stats().entries; }
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    body_.for_each([&](std::uint64_t, std::uint64_t) { ++result.entries; });
    result.medium_bytes = sizeof(area) + body_.held();
    return result;
  }
  [[nodiscard]] indexes::check_report check() const { return {}; }

 private:
  small_map(Medium& medium, std::string_view name) : body_(medium, area_of(medium, name), mutex_) {}

  static area& area_of(Medium& medium, std::string_view name) {
    word& root = *medium.named_root(name, layout_name, layout_version).word;
    if (get(root) == 0) {
      typename Medium::publication change(medium);
      auto* const made = media::create<area>(change);
      if (body_type::root_is_durable()) media::persist(medium, *made);
      change.store(root, medium.locate(made).word());
      change.commit();
    }
    return *medium.resolve(media::pointer<area>(get(root)));
  }

  outcome put_in(std::uint64_t key, std::uint64_t value, bool replaces) {
    const std::unique_lock guard(mutex_);
    if (!body_.find(key)) return body_.add(key, value) ? outcome::inserted : outcome::full;
    if (!replaces) return outcome::exists;
    body_.set(key, value);
    return outcome::updated;
  }

  std::mutex mutex_;
  mutable body_type body_;
};

}  // namespace pmlab::toys
