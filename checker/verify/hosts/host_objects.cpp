// What each host has loaded of a subject.
#include "checker/verify/hosts/host_objects.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace pmlab::verify {

host_objects& host_objects::of(const subject& kind) {
  static std::map<const subject*, host_objects> all;
  return all[&kind];
}

void host_objects::add(unsigned host, const std::vector<simulator::object_part>& parts) {
  for (const simulator::object_part& p : parts) {
    memory_.push_back({.where = p.where, .host = host});
    if (!p.is_writable) continue;
    variables_.push_back(p.where);
    bytes_ += p.where.bytes;
  }
}

bool host_objects::has(unsigned host) const noexcept {
  return std::any_of(memory_.begin(), memory_.end(), [=](const auto& m) { return m.host == host; });
}

void host_objects::remember() {
  if (bytes_ > most_compared_bytes) return;
  remembered_.resize(bytes_);
  std::size_t at = 0;
  for (const simulator::code_range& v : variables_) {
    std::memcpy(remembered_.data() + at, reinterpret_cast<const void*>(v.start), v.bytes);
    at += v.bytes;
  }
}

bool host_objects::have_changed() const noexcept {
  if (bytes_ > most_compared_bytes) return true;
  std::size_t at = 0;
  for (const simulator::code_range& v : variables_) {
    if (std::memcmp(remembered_.data() + at, reinterpret_cast<const void*>(v.start), v.bytes) != 0) return true;
    at += v.bytes;
  }
  return false;
}

}  // namespace pmlab::verify
