// Flushes and fences of a campaign that had no effect.
#include "checker/verify/flush_profile.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/media/lines.hpp>

#include <new>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include <sys/mman.h>

namespace pmlab::verify {

struct flush_profile::lines {
  std::unordered_set<std::uintptr_t> dirty;                      // stored to since their last flush
  std::unordered_map<std::uintptr_t, std::uint64_t> flushed_in;  // the operation of a line's last flush
  std::unordered_set<unsigned> waiting;                          // threads with flushes that no fence has followed
};

namespace {

std::uintptr_t line_of(std::uintptr_t address) noexcept { return address & ~(media::cache_line_bytes - 1); }

unsigned this_thread() noexcept { return simulator::the_machine().current()->number; }

}  // namespace

flush_profile& flush_profile::make() {
  void* const area = ::mmap(nullptr, sizeof(flush_profile), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  return *::new (area) flush_profile;
}

flush_profile::~flush_profile() { delete lines_; }

void flush_profile::begin() {
  if (lines_ == nullptr) lines_ = new lines;
  *lines_ = {};
  simulator::the_machine().watch_durability(this);
}

// Beyond the last place all are one: an object has fewer places that flush.
flush_place& flush_profile::place_of(const void* caller) noexcept {
  std::size_t at = mix_bits(reinterpret_cast<std::uintptr_t>(caller)) % most_places;
  for (std::size_t tries = 0; tries < most_places; ++tries, at = (at + 1) % most_places) {
    flush_place& p = places_[at];
    if (p.caller == nullptr) p.caller = caller;
    if (p.caller == caller) return p;
  }
  return places_[0];
}

std::vector<flush_place> flush_profile::places() const {
  std::vector<flush_place> used;
  for (const flush_place& p : places_)
    if (p.caller != nullptr) used.push_back(p);
  return used;
}

void flush_profile::stored(std::uintptr_t address, std::size_t bytes) {
  media::for_each_line(reinterpret_cast<const void*>(address), bytes,
                       [this](std::uintptr_t line) { lines_->dirty.insert(line); });
}

// It needs no flush, but the fence.
void flush_profile::stored_around(std::uintptr_t /*address*/, std::size_t /*bytes*/) {
  lines_->waiting.insert(this_thread());
}

void flush_profile::flushed(std::uintptr_t address, bool persistent, const void* caller) {
  flush_place& place = place_of(caller);
  ++place.flushes;
  const auto wasted = [&](waste kind) { ++place.wasted[static_cast<std::size_t>(kind)]; };
  if (!persistent) return wasted(waste::of_volatile);
  const std::uintptr_t line = line_of(address);
  if (lines_->dirty.erase(line) == 0) return wasted(waste::clean);
  lines_->waiting.insert(this_thread());
  const auto [last, is_first] = lines_->flushed_in.try_emplace(line, operations_);
  if (!is_first && last->second == operations_) wasted(waste::again);
  last->second = operations_;
}

void flush_profile::fenced(const void* caller) {
  flush_place& place = place_of(caller);
  ++place.fences;
  if (lines_->waiting.erase(this_thread()) == 0) ++place.wasted[static_cast<std::size_t>(waste::idle)];
}

// The line is written back with it.
void flush_profile::published(std::uintptr_t address) { lines_->dirty.erase(line_of(address)); }

}  // namespace pmlab::verify
