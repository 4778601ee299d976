// The indexes and the media that the typed tests run on.
#pragma once

#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/jemalloc_dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <string>

#include <gtest/gtest.h>

#include "support/crash_medium.hpp"
#include "support/reference_index.hpp"

namespace pmlab::tests {

// An index, on whatever medium. Adding an index to the tests is adding its kind here and to the lists below.
struct fast_fair_kind {
  static constexpr const char* name = "fast_fair";
  template <class Medium>
  using index = indexes::fast_fair<Medium>;
};

struct cceh_kind {
  static constexpr const char* name = "cceh";
  template <class Medium>
  using index = indexes::cceh<Medium>;
};

// Tests the tests: what fails on it is wrong about the test.
struct reference_kind {
  static constexpr const char* name = "reference";
  template <class Medium>
  using index = reference_index<Medium>;
};

template <class Kind, class Medium>
struct setting {
  using kind = Kind;
  using medium = Medium;
  using index = typename Kind::template index<Medium>;
};

namespace detail {

template <class Medium>
constexpr const char* medium_name = "medium";
template <>
inline constexpr const char* medium_name<media::dram> = "dram";
template <>
inline constexpr const char* medium_name<media::jemalloc_dram> = "jemalloc_dram";
template <>
inline constexpr const char* medium_name<media::pmem> = "pmem";
template <>
inline constexpr const char* medium_name<crash_medium> = "crash_medium";

}  // namespace detail

// Names of typed tests: point/fast_fair_on_pmem.F8_...
struct setting_name {
  template <class Setting>
  static std::string GetName(int /*position*/) {
    if constexpr (requires { typename Setting::medium; })
      return std::string(Setting::kind::name) + "_on_" + detail::medium_name<typename Setting::medium>;
    else
      return Setting::name;
  }
};

// The indexes that pmlab offers.
using offered_kinds = testing::Types<fast_fair_kind, cceh_kind>;
using all_kinds = testing::Types<fast_fair_kind, cceh_kind, reference_kind>;

using all_settings = testing::Types<setting<fast_fair_kind, media::dram>, setting<fast_fair_kind, media::jemalloc_dram>,
                                    setting<fast_fair_kind, media::pmem>, setting<fast_fair_kind, crash_medium>,
                                    setting<cceh_kind, media::dram>, setting<cceh_kind, media::jemalloc_dram>,
                                    setting<cceh_kind, media::pmem>, setting<cceh_kind, crash_medium>,
                                    setting<reference_kind, media::dram>, setting<reference_kind, media::pmem>>;

using ordered_settings =
    testing::Types<setting<fast_fair_kind, media::dram>, setting<fast_fair_kind, media::jemalloc_dram>,
                   setting<fast_fair_kind, media::pmem>, setting<fast_fair_kind, crash_medium>,
                   setting<reference_kind, media::dram>>;

// Media that any number of threads may use.
using concurrent_settings = testing::Types<setting<fast_fair_kind, media::dram>, setting<fast_fair_kind, media::pmem>,
                                           setting<cceh_kind, media::dram>, setting<cceh_kind, media::pmem>,
                                           setting<reference_kind, media::dram>>;

using ordered_concurrent_settings =
    testing::Types<setting<fast_fair_kind, media::dram>, setting<fast_fair_kind, media::pmem>,
                   setting<reference_kind, media::dram>>;

}  // namespace pmlab::tests
