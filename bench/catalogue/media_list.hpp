// The media for which the benchmark instantiates an index: the one list of them, and how each is made from the user's
// options. Indexes that are built for the simulated machine (PMLAB_SIMULATED) use its persistent memory, and its DRAM
// for combinations with a half there.
#pragma once

#include <pmlab/media/dram.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/catalogue/subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/simulated.hpp"
#else
#include <pmlab/media/pmem.hpp>
#include "bench/catalogue/chosen_medium.hpp"
#endif

#include <memory>

namespace pmlab::bench {

#if defined(PMLAB_SIMULATED)
// Persistent memory of the simulated machine, on which an index has the sizes that it has on a device: `simulated`
// itself is for histories of a few operations. As many locks as there, and a recovery by one thread, whatever machine
// this is.
class simulated_device : public simulator::simulated {
 public:
  static constexpr media::index_sizes sizes{.lock_stripes = simulator::simulated::sizes.lock_stripes,
                                            .recovers_in_parallel = false};
  using simulator::simulated::simulated;
};
#endif

template <class Medium>
struct medium_tag {};

// Calls visit(medium_tag<M>{}) for every medium M.
template <class Visit>
void for_each_medium(Visit&& visit) {
  visit(medium_tag<media::dram>{});
#if defined(PMLAB_SIMULATED)
  visit(medium_tag<simulated_device>{});
#else
  visit(medium_tag<media::pmem>{});
  visit(medium_tag<chosen_medium>{});
#endif
}

// Any of them, for static facts of an index.
#if defined(PMLAB_SIMULATED)
using some_medium = simulated_device;
#else
using some_medium = media::dram;
#endif

// The benchmark's properties of a medium.
//   simulated, watched   which of the media it is
//   has_roots            whether it can be in a pool, whose roots it knows
//   is_meant_by(spec)    whether `spec` asks for it
//   make(setup)          throws pmlab::error: see the media's constructors
template <class Medium>
struct medium_traits;

#if defined(PMLAB_SIMULATED)

template <>
struct medium_traits<simulated_device> {
  static constexpr bool simulated = true;
  static constexpr bool watched = false;
  static constexpr bool has_roots = false;
  static bool is_meant_by(const medium_spec& spec) { return spec.simulated && !spec.counted && !spec.in_pool(); }
  static std::unique_ptr<simulated_device> make(const subject_setup& setup) {
    return std::make_unique<simulated_device>(setup.medium.profile, setup.pool_bytes);
  }
};

#else

inline media::dram_options options_of_dram(const subject_setup& setup) { return {.huge_pages = setup.huge_pages}; }
inline media::pmem_options options_of_pool(const subject_setup& setup) {
  return {.create_bytes = setup.pool_bytes,
          .huge_pages = setup.huge_pages,
          .bypass_msync = true,
          .persistence = setup.medium.persistence};
}

template <>
struct medium_traits<media::pmem> {
  static constexpr bool simulated = false;
  static constexpr bool watched = false;
  static constexpr bool has_roots = true;
  static bool is_meant_by(const medium_spec& spec) {
    return spec.in_pool() && !spec.emulated() && !spec.counted && !spec.simulated;
  }
  static std::unique_ptr<media::pmem> make(const subject_setup& setup) {
    return std::make_unique<media::pmem>(setup.medium.path, options_of_pool(setup));
  }
};

template <>
struct medium_traits<chosen_medium> {
  static constexpr bool simulated = false;
  static constexpr bool watched = true;
  static constexpr bool has_roots = true;
  static bool is_meant_by(const medium_spec& spec) { return (spec.counted || spec.emulated()) && !spec.simulated; }
  static std::unique_ptr<chosen_medium> make(const subject_setup& setup) { return make_chosen_medium(setup); }
};

#endif

template <>
struct medium_traits<media::dram> {
  static constexpr bool simulated = false;
  static constexpr bool watched = false;
  static constexpr bool has_roots = false;
  static bool is_meant_by(const medium_spec& spec) { return spec.plain_dram(); }
  static std::unique_ptr<media::dram> make([[maybe_unused]] const subject_setup& setup) {
#if defined(PMLAB_SIMULATED)
    return std::make_unique<media::dram>();
#else
    return std::make_unique<media::dram>(options_of_dram(setup));
#endif
  }
};

}  // namespace pmlab::bench
