// The media for which the benchmark instantiates an index: the one list of them, and how each is made from what the
// user asked for. Indexes that are built for the simulated machine (PMLAB_SIMULATED) know its persistent memory, and its
// DRAM for what has a half there.
#pragma once

#include "tools/catalogue/medium_spec.hpp"
#include "tools/catalogue/subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/simulated.hpp"
#include <pmlab/media/dram.hpp>
#else
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/emulated.hpp>
#include <pmlab/media/pmem.hpp>
#endif

#include <memory>
#include <utility>

namespace pmlab::bench {

template <class Medium>
struct medium_tag {};

// Calls visit(medium_tag<M>{}) for every medium M.
template <class Visit>
void for_each_medium(Visit&& visit) {
#if defined(PMLAB_SIMULATED)
  visit(medium_tag<simulator::simulated>{});
  visit(medium_tag<media::dram>{});
#else
  using media::counted;
  using media::dram;
  using media::emulated;
  using media::pmem;
  visit(medium_tag<dram>{});
  visit(medium_tag<pmem>{});
  visit(medium_tag<emulated<dram> >{});
  visit(medium_tag<emulated<pmem> >{});
  visit(medium_tag<counted<dram> >{});
  visit(medium_tag<counted<pmem> >{});
  visit(medium_tag<counted<emulated<dram> > >{});
  visit(medium_tag<counted<emulated<pmem> > >{});
#endif
}

// Any of them, for what an index says about itself.
#if defined(PMLAB_SIMULATED)
using some_medium = simulator::simulated;
#else
using some_medium = media::dram;
#endif

// Which of them a specification means.
struct medium_kind {
  bool counted = false;
  bool emulated = false;
  bool in_pool = false;
  bool simulated = false;
  friend bool operator==(const medium_kind&, const medium_kind&) = default;
};

[[nodiscard]] inline medium_kind kind_of_spec(const medium_spec& spec) noexcept {
  return {spec.counted, spec.emulated(), spec.in_pool(), spec.simulated};
}

namespace detail {

// kind: what a medium is; construct(setup, make): make(constructor arguments...).
template <class Medium>
struct medium_traits;

#if defined(PMLAB_SIMULATED)

template <>
struct medium_traits<simulator::simulated> {
  static constexpr medium_kind kind{.simulated = true};
  template <class Make>
  static auto construct(const subject_setup& setup, Make&& make) {
    return make(setup.medium.profile, setup.pool_bytes);
  }
};

template <>
struct medium_traits<media::dram> {
  static constexpr medium_kind kind{};
  template <class Make>
  static auto construct(const subject_setup& /*setup*/, Make&& make) {
    return make();
  }
};

#else

template <>
struct medium_traits<media::dram> {
  static constexpr medium_kind kind{};
  template <class Make>
  static auto construct(const subject_setup& setup, Make&& make) {
    return make(media::dram_options{.huge_pages = setup.huge_pages});
  }
};

template <>
struct medium_traits<media::pmem> {
  static constexpr medium_kind kind{.in_pool = true};
  template <class Make>
  static auto construct(const subject_setup& setup, Make&& make) {
    return make(
        setup.medium.path,
        media::pmem_options{.create_bytes = setup.pool_bytes, .huge_pages = setup.huge_pages, .bypass_msync = true});
  }
};

template <class Inner>
struct medium_traits<media::emulated<Inner> > {
  static constexpr medium_kind kind{.emulated = true, .in_pool = medium_traits<Inner>::kind.in_pool};
  template <class Make>
  static auto construct(const subject_setup& setup, Make&& make) {
    return medium_traits<Inner>::construct(setup, [&](auto&&... arguments) {
      return make(setup.emulation->profile, std::forward<decltype(arguments)>(arguments)...);
    });
  }
};

template <class Inner>
struct medium_traits<media::counted<Inner> > {
  static constexpr medium_kind kind{
      .counted = true, .emulated = medium_traits<Inner>::kind.emulated, .in_pool = medium_traits<Inner>::kind.in_pool};
  template <class Make>
  static auto construct(const subject_setup& setup, Make&& make) {
    return medium_traits<Inner>::construct(setup, std::forward<Make>(make));
  }
};

#endif

}  // namespace detail

template <class Medium>
inline constexpr medium_kind kind_of = detail::medium_traits<Medium>::kind;

template <class Medium>
concept counting_medium = kind_of<Medium>
.counted;

// Throws pmlab::error: see the media's constructors.
template <class Medium>
[[nodiscard]] std::unique_ptr<Medium> make_medium(const subject_setup& setup) {
  return detail::medium_traits<Medium>::construct(setup, [](auto&&... arguments) {
    return std::make_unique<Medium>(std::forward<decltype(arguments)>(arguments)...);
  });
}

}  // namespace pmlab::bench
