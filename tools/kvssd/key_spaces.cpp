#include "tools/kvssd/key_spaces.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <span>

namespace pmlab::kvssd {
namespace {

// Value of a name's pair.
struct name_record {
  std::uint64_t capacity = 0;
  std::uint64_t is_going = 0;  // 1: its pairs are being removed
};

std::string key_of(std::uint8_t id) { return {'n', 'a', 'm', 'e', static_cast<char>(id)}; }

}  // namespace

key_spaces::key_spaces(engine& pairs) : pairs_(pairs) {
  std::bitset<most> lost;
  for (unsigned id = 0; id < most; ++id) {
    std::optional<std::vector<std::byte>> found;
    try {
      found = pairs_.get(key_of(static_cast<std::uint8_t>(id)), own);
      if (!found) continue;
    } catch (const stores::kv_damaged&) {
      // Named below.
    }
    name_record record;
    if (!found || found->size() <= sizeof record) {
      lost.set(id);
      continue;
    }
    std::memcpy(&record, found->data(), sizeof record);
    if (record.is_going != 0) {
      going_.set(id);
      continue;
    }
    const std::string name(reinterpret_cast<const char*>(found->data()) + sizeof record, found->size() - sizeof record);
    key_space& made = all_[name];
    made.id = static_cast<std::uint8_t>(id);
    made.name = name;
    made.capacity = record.capacity;
  }
  for (unsigned id = 0; id < most; ++id) {
    if (!lost.test(id)) continue;
    std::string stand_in = "#damaged-" + std::to_string(id);
    while (all_.contains(stand_in)) stand_in += '#';
    key_space& made = all_[stand_in];
    made.id = static_cast<std::uint8_t>(id);
    made.name = stand_in;
    made.is_lost = true;
  }
  finish_removals();
}

space_outcome key_spaces::make(std::string_view name, std::uint64_t capacity) {
  const std::scoped_lock lock(mutex_);
  if (all_.contains(name)) return space_outcome::exists;
  check_lost(name);
  finish_removals();
  std::bitset<most> taken = going_;
  for (const auto& [other, space] : all_) taken.set(space.id);
  if (taken.all()) return space_outcome::full;
  std::uint8_t id = 0;
  while (taken.test(id)) ++id;
  const auto made = all_.try_emplace(std::string(name)).first;
  try {
    made->second.id = id;
    made->second.name = name;
    made->second.capacity = capacity;
    if (write(made->second, false)) return space_outcome::done;
  } catch (...) {
    all_.erase(made);
    throw;
  }
  all_.erase(made);
  return space_outcome::full;
}

// (N1) the name is marked < (N2) its pairs go < (N3) the name goes.
// (N1) is the removal: what may fail comes before it, or is tried again later. A crash or a failure leaves a marked
// name.
space_outcome key_spaces::remove(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const auto at = all_.find(name);
  if (at == all_.end()) check_lost(name);
  if (at == all_.end()) return space_outcome::absent;
  if (at->second.is_open) return space_outcome::is_open;
  if (!write(at->second, true)) return space_outcome::full;  // (N1)
  going_.set(at->second.id);
  all_.erase(at);
  finish_removals();
  return space_outcome::done;
}

// Those that fail stay as they are, until the next time.
void key_spaces::finish_removals() noexcept {
  for (unsigned id = 0; id < most && going_.any(); ++id) {
    if (!going_.test(id)) continue;
    const auto of = static_cast<std::uint8_t>(id);
    try {
      pairs_.erase_space(of);         // (N2) damage keeps nothing that can be freed
      pairs_.erase(key_of(of), own);  // (N3)
      going_.reset(id);
    } catch (const std::exception&) {
      // (N1) stays: the pairs belong to no key space.
    }
  }
}

key_space* key_spaces::open(std::string_view name, space_outcome& outcome) {
  const std::scoped_lock lock(mutex_);
  const auto at = all_.find(name);
  outcome = at == all_.end()     ? space_outcome::absent
            : at->second.is_open ? space_outcome::is_open
                                 : space_outcome::done;
  if (outcome == space_outcome::absent) check_lost(name);
  if (outcome != space_outcome::done) return nullptr;
  key_space& space = at->second;
  if (space.capacity != 0) space.used.store(count(space.id).bytes, std::memory_order_relaxed);
  space.is_open = true;
  return &space;
}

void key_spaces::close(key_space& space) {
  const std::scoped_lock lock(mutex_);
  space.is_open = false;
}

std::vector<std::string> key_spaces::names() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [name, space] : all_) result.push_back(name);
  return result;
}

std::uint64_t key_spaces::reserved() const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& [name, space] : all_) sum += space.capacity;
  return sum;
}

key_spaces::content key_spaces::count(std::uint8_t id) {
  content sum;
  const auto add = [&](const std::string& key) {
    const auto bytes = pairs_.size_of(key, id);
    if (!bytes) return;
    ++sum.pairs;
    sum.bytes += bytes->most;
  };
  const stores::kv_damage damage = pairs_.for_each_key_there({}, id, add);
  sum.pairs += damage.records;
  sum.bytes += damage.most_bytes;
  return sum;
}

void key_spaces::check_lost(std::string_view name) const {
  const auto lost = std::ranges::find_if(all_, [](const auto& one) { return one.second.is_lost; });
  if (lost == all_.end()) return;
  throw error(
      "key space '" + std::string(name) + "' is not there, or is the one whose name is damaged, '" + lost->first + "'",
      "open that one, copy its pairs, and delete it");
}

bool key_spaces::write(const key_space& space, bool is_going) {
  const name_record record{space.capacity, is_going ? std::uint64_t{1} : 0};
  std::vector<std::byte> value(sizeof record + space.name.size());
  std::memcpy(value.data(), &record, sizeof record);
  std::memcpy(value.data() + sizeof record, space.name.data(), space.name.size());
  return pairs_.put(key_of(space.id), value, stores::kv_mode::post, own) != stores::kv_outcome::full;
}

}  // namespace pmlab::kvssd
