#include "tools/kvssd/iterators.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace pmlab::kvssd {
namespace {

void put(std::span<std::byte> out, std::uint32_t& at, std::span<const std::byte> bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(out.data() + at, &length, sizeof length);
  at += static_cast<std::uint32_t>(sizeof length);
  if (!bytes.empty()) std::memcpy(out.data() + at, bytes.data(), bytes.size());
  at += length;
}

}  // namespace

iterators::outcome iterators::open(std::uint8_t space, stores::kv_prefix prefix, bool with_values,
                                   std::uint8_t& handle) {
  const std::scoped_lock lock(mutex_);
  const auto same = [&](const std::shared_ptr<one>& o) {
    return o && o->space == space && o->with_values == with_values && o->prefix.mask == prefix.mask &&
           o->prefix.pattern == prefix.pattern;
  };
  if (std::ranges::any_of(open_, same)) return outcome::is_open;
  const auto free = std::ranges::find(open_, nullptr);
  if (free == open_.end()) return outcome::too_many;
  *free = std::make_shared<one>(pairs_, space, prefix, with_values);
  handle = static_cast<std::uint8_t>(free - open_.begin() + 1);
  return outcome::done;
}

iterators::outcome iterators::close(std::uint8_t space, std::uint8_t handle) {
  const std::scoped_lock lock(mutex_);
  if (handle == 0 || handle > open_.size() || !open_[handle - 1] || open_[handle - 1]->space != space)
    return outcome::absent;
  open_[handle - 1].reset();
  return outcome::done;
}

void iterators::close_all(std::uint8_t space) {
  const std::scoped_lock lock(mutex_);
  for (std::shared_ptr<one>& o : open_)
    if (o && o->space == space) o.reset();
}

std::shared_ptr<iterators::one> iterators::find(std::uint8_t space, std::uint8_t handle) {
  const std::scoped_lock lock(mutex_);
  if (handle == 0 || handle > open_.size() || !open_[handle - 1] || open_[handle - 1]->space != space) return nullptr;
  return open_[handle - 1];
}

iterators::outcome iterators::next(std::uint8_t space, std::uint8_t handle, std::span<std::byte> out, filled& result) {
  constexpr std::size_t at_once = 64;
  const std::shared_ptr<one> of = find(space, handle);
  if (!of) return outcome::absent;
  const std::scoped_lock lock(of->mutex);
  result = {};
  for (;;) {
    try {
      if (of->returned == of->ahead.size() && !of->is_over) {
        of->ahead = of->walk.next(at_once);
        of->returned = 0;
        of->is_over = of->ahead.size() < at_once;
      }
      if (of->returned == of->ahead.size()) {
        result.end = true;
        return outcome::done;
      }
      if (!add(*of, of->ahead[of->returned], out, result))
        return result.entries == 0 ? outcome::no_room : outcome::done;
    } catch (const stores::kv_damaged&) {
      if (result.entries != 0) return outcome::done;
      if (of->returned != of->ahead.size()) ++of->returned;
      throw;
    } catch (...) {
      if (result.entries != 0) return outcome::done;
      throw;
    }
    ++of->returned;
  }
}

// A key that was deleted since the walk had it is not returned.
bool iterators::add(const one& of, const std::string& key, std::span<std::byte> out, filled& result) {
  const std::span<const std::byte> name = std::as_bytes(std::span(key));
  std::size_t needed = sizeof(std::uint32_t) + name.size();
  if (!of.with_values) {
    const std::string_view one_key = key;
    if (!pairs_.exist({&one_key, 1}, of.space).front()) return true;
    if (out.size() - result.bytes < needed) return false;
    put(out, result.bytes, name);
  } else {
    const auto value = pairs_.get(key, of.space);
    if (!value) return true;
    needed += sizeof(std::uint32_t) + value->size();
    if (out.size() - result.bytes < needed) return false;
    put(out, result.bytes, name);
    put(out, result.bytes, *value);
  }
  ++result.entries;
  return true;
}

}  // namespace pmlab::kvssd
