// A toy: a store of keys whose map, in memory, leads to values on a drive that are not written yet.
#include "checker/verify/register_store.hpp"
#include "../slot_map.hpp"

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include <cstring>
#include <vector>

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "unwritten_value";
  using plain_rules<Medium>::plain_rules;
};

// The value of the map is the block of the drive that holds the key's value. One lock for all.
template <class Medium, class Drive>
class store {
 public:
  static constexpr std::string_view layout_name = "unwritten_value";
  static constexpr std::uint64_t layout_version = 1;
  static constexpr blocks::geometry drive{.blocks = 4608, .block_bytes = 512, .atomic_bytes = 512};

  store(Medium& medium, Drive& on) : map_(slot_map<Medium, rules<Medium>>::open(medium)), drive_(on), staged_(512) {
    std::vector<bool> used(drive.blocks);
    map_.for_each([&](std::uint64_t, std::uint64_t block) { used[block] = true; });
    for (std::uint64_t b = drive.blocks; b > 0; --b)
      if (!used[b - 1]) free_.push_back(b - 1);
  }

  outcome insert(std::uint64_t key, std::uint64_t value) {
    const std::scoped_lock lock(mutex_);
    return map_.find(key) ? outcome::exists : put(key, value);
  }
  outcome update(std::uint64_t key, std::uint64_t value) {
    const std::scoped_lock lock(mutex_);
    return map_.find(key) ? put(key, value) : outcome::absent;
  }
  outcome upsert(std::uint64_t key, std::uint64_t value) {
    const std::scoped_lock lock(mutex_);
    return put(key, value);
  }
  outcome erase(std::uint64_t key) {
    const std::scoped_lock lock(mutex_);
    const auto block = map_.find(key);
    const outcome done = map_.erase(key);
    if (block) free_.push_back(*block);
    return done;
  }
  std::optional<std::uint64_t> find(std::uint64_t key) {
    const std::scoped_lock lock(mutex_);
    const auto block = map_.find(key);
    return block ? std::optional(value_in(*block)) : std::nullopt;
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  template <class Function>
  void for_each(Function&& function) const {
    map_.for_each([&](std::uint64_t key, std::uint64_t block) { function(key, value_in(block)); });
  }
  [[nodiscard]] std::uint64_t size() const { return map_.size(); }
  [[nodiscard]] indexes::index_stats stats() const { return map_.stats(); }
  [[nodiscard]] indexes::check_report check() const { return map_.check(); }

 private:
  outcome put(std::uint64_t key, std::uint64_t value) {
    const auto old = map_.find(key);
    const std::uint64_t block = free_.back();
    free_.pop_back();
    outcome done{};
    if (has_defect()) done = map_.upsert(key, block);
    std::memcpy(staged_.data(), &value, sizeof value);
    drive_.write_durable(block, staged_.bytes());
    if (!has_defect()) done = map_.upsert(key, block);
    if (old) free_.push_back(*old);
    return done;
  }
  [[nodiscard]] std::uint64_t value_in(std::uint64_t block) const {
    drive_.read(block, staged_.bytes());
    std::uint64_t value = 0;
    std::memcpy(&value, staged_.data(), sizeof value);
    return value;
  }

  slot_map<Medium, rules<Medium>> map_;
  mutable blocks::synchronous<Drive> drive_;
  mutable blocks::buffer staged_;
  std::vector<std::uint64_t> free_;
  std::mutex mutex_;
};

const bool registered = verify::register_store<store>(true);

}  // namespace
}  // namespace pmlab::toys
