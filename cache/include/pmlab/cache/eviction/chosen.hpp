// An eviction policy that is chosen at run time: one instantiation of the cache for all of them.
//
// A policy that is known at compile time is a template argument of the cache and saves a branch on every hit.
#pragma once

#include <pmlab/cache/eviction/clock.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/cache/eviction/lru.hpp>
#include <pmlab/cache/eviction/s3_fifo.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace pmlab::cache {

// The policies; each has a header of its own.
enum class eviction : std::uint8_t { lru, clock, s3_fifo };
// The names as users write them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 3> eviction_names = {"lru", "clock", "s3_fifo"};

// Forwards to the policy `which`.
class chosen_eviction {
  template <class Work>
  decltype(auto) with(Work&& work) const noexcept {
    switch (which_) {
      case eviction::clock: return work(clock{});
      case eviction::s3_fifo: return work(s3_fifo{});
      case eviction::lru: break;
    }
    return work(lru{});
  }

 public:
  // The policy does not change.
  explicit chosen_eviction(eviction which) : which_(which) {}

  [[nodiscard]] bool uses_side_words() const noexcept {
    return with([](const auto& policy) { return policy.uses_side_words(); });
  }
  [[nodiscard]] eviction_state initial() const noexcept {
    return with([](const auto& policy) { return policy.initial(); });
  }
  [[nodiscard]] std::uint32_t hit(std::uint32_t word, unsigned way) const noexcept {
    return with([&](const auto& policy) { return policy.hit(word, way); });
  }
  [[nodiscard]] unsigned victim(eviction_state& state, const tags_of_set& tags) const noexcept {
    return with([&](const auto& policy) { return policy.victim(state, tags); });
  }
  void filled(eviction_state& state, unsigned way, tag_type tag) const noexcept {
    with([&](const auto& policy) { policy.filled(state, way, tag); });
  }
  [[nodiscard]] bool is_sound(const eviction_state& state) const noexcept {
    return with([&](const auto& policy) { return policy.is_sound(state); });
  }

 private:
  eviction which_;
};

static_assert(eviction_policy<chosen_eviction>);

}  // namespace pmlab::cache
