// The indexes and the media that the typed tests run on.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/jemalloc_dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "offered_indexes.hpp"
#include "support/compiled_indexes.hpp"
#include "support/reference_index.hpp"
#include "support/restartable_medium.hpp"

#if defined(PMLAB_TESTS_OF_CACHES)
#include "cache/tests/cached_kinds.hpp"
#elif defined(PMLAB_TESTS_OF_STRINGS)
#include "strings/tests/string_kinds.hpp"
#endif
#if defined(PMLAB_TESTS_OF_CACHES) || defined(PMLAB_TESTS_OF_STRINGS)
#define PMLAB_TESTS_OF_LAYERS
#endif

namespace pmlab::tests {

// An index, on whatever medium.
template <template <class...> class Index>
struct kind {
  static constexpr const char* name = Index<media::dram>::layout_name.data();
  template <class Medium>
  using index = Index<Medium>;
};

#if defined(PMLAB_TESTS_OF_CACHES)

// A cache in front of two of them (cache/tests).
using all_kinds = testing::Types<kind<cached_cceh>, kind<cached_fast_fair>>;

#elif defined(PMLAB_TESTS_OF_STRINGS)

// String keys over whatever keeps words (strings/tests).
using all_kinds = testing::Types<kind<strings_cceh>, kind<strings_cached>, kind<strings_hybrid>, kind<strings_woart>>;

#else

// The indexes that pmlab offers: an entry of indexes/indexes.json puts one to every test.
using offered_kinds = each_offered_index<testing::Types, kind>;

#endif

// Tests the tests: a failure on it is a defect of the test.
struct reference_kind {
  static constexpr const char* name = "reference";
  template <class Medium>
  using index = reference_index<Medium>;
};

// Trees and lists, whose nodes are small; else hash tables, whose segments are big.
template <class Kind>
inline constexpr bool is_ordered = indexes::ordered_index<typename Kind::template index<media::dram>>;

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
inline constexpr const char* medium_name<restartable_medium> = "restartable_medium";

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

namespace detail {

template <class... Lists>
struct joined;
template <class... Ts>
struct joined<testing::Types<Ts...>> {
  using type = testing::Types<Ts...>;
};
template <class... Ts, class... Us, class... Lists>
struct joined<testing::Types<Ts...>, testing::Types<Us...>, Lists...> : joined<testing::Types<Ts..., Us...>, Lists...> {
};

template <class Kind, class... Media>
using settings_of = testing::Types<setting<Kind, Media>...>;

template <class Kinds, class... Media>
struct on_media;
template <class... Kinds, class... Media>
struct on_media<testing::Types<Kinds...>, Media...> {
  using all = typename joined<settings_of<Kinds, Media...>...>::type;
  using ordered =
      typename joined<std::conditional_t<is_ordered<Kinds>, settings_of<Kinds, Media...>, testing::Types<>>...>::type;
};

}  // namespace detail

#if !defined(PMLAB_TESTS_OF_LAYERS)
using all_kinds = detail::joined<offered_kinds, testing::Types<reference_kind>>::type;
#endif

// Every kind on each of the media.
template <class... Media>
using all_kinds_on = typename detail::on_media<all_kinds, Media...>::all;
template <class... Media>
using ordered_kinds_on = typename detail::on_media<all_kinds, Media...>::ordered;

#if defined(PMLAB_TESTS_OF_STRINGS)
// Crashes of strings are for `pmlab verify`.
using all_settings = all_kinds_on<media::dram>;
using ordered_settings = ordered_kinds_on<media::dram>;
using durable_settings = all_kinds_on<media::pmem>;
using concurrent_settings = all_settings;
using ordered_concurrent_settings = ordered_settings;
#elif defined(PMLAB_TESTS_OF_CACHES)
using all_settings = all_kinds_on<media::dram, restartable_medium>;
using ordered_settings = ordered_kinds_on<media::dram, restartable_medium>;
using durable_settings = all_kinds_on<media::pmem, restartable_medium>;
using concurrent_settings = all_kinds_on<media::dram>;
using ordered_concurrent_settings = ordered_kinds_on<media::dram>;
#elif defined(PMLAB_SANITIZED)
// Sanitizers find the same on every medium, and only in DRAM they see all of it.
using all_settings = all_kinds_on<media::dram>;
using ordered_settings = ordered_kinds_on<media::dram>;
using durable_settings = all_kinds_on<media::pmem, restartable_medium>;
using concurrent_settings = all_settings;
using ordered_concurrent_settings = ordered_settings;
#else
// A defect of a test shows on any medium; jemalloc_dram differs from dram in its allocator, so one index on
// it is enough.
using offered_on = detail::on_media<offered_kinds, media::dram, media::pmem, restartable_medium>;
using reference_setting = testing::Types<setting<reference_kind, media::dram>>;
using all_settings = detail::joined<offered_on::all, reference_setting,
                                    testing::Types<setting<kind<indexes::cceh>, media::jemalloc_dram>>>::type;
using ordered_settings = detail::joined<offered_on::ordered, reference_setting>::type;
using durable_settings = all_kinds_on<media::pmem, restartable_medium>;

// Media that any number of threads may use.
using offered_for_threads_on = detail::on_media<offered_kinds, media::dram, media::pmem>;
using concurrent_settings = detail::joined<offered_for_threads_on::all, reference_setting>::type;
using ordered_concurrent_settings = detail::joined<offered_for_threads_on::ordered, reference_setting>::type;
#endif

}  // namespace pmlab::tests
