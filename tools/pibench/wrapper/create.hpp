// create_tree of pmlab's libraries: opens the memory that PiBench's options name, and the index in it.
//
//   pool_path empty      DRAM: nothing survives the tree
//   pool_path exists     a pmlab pool (media/pmem.hpp), recovered; pool_size is ignored
//   pool_path does not   a new pool of pool_size bytes
//
// Keys and values of 8 bytes are the index's own; any other sizes are a string index's, whose words it keeps.
//
// A recipe defines how an index is opened on a medium: `recipe.open(medium, name)`; it outlives the index, and may hold
// further objects that the index needs (wrapper/alone.hpp, wrapper/cached.hpp, wrapper/hybrid.hpp).
#pragma once

#include "tools/pibench/wrapper/message.hpp"
#include "tools/pibench/wrapper/tree_of_strings.hpp"
#include "tools/pibench/wrapper/tree_of_words.hpp"
#include "tools/pibench/wrapper/with_bulk_load.hpp"
#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/probe_pool.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

namespace pmlab::pibench {

namespace detail {

inline constexpr std::size_t word_bytes = 8;

// Throws pmlab::error, in the words of PiBench's options.
inline void check_pool(const tree_options_t& options) {
  std::error_code failure;
  const bool exists = std::filesystem::exists(options.pool_path, failure);
  if (failure)
    throw error("cannot reach pool " + options.pool_path + ": " + failure.message(),
                remedy_for(failure.value(), "check the path and its permissions"));
  if (options.pool_size == 0 && !exists)
    throw error("there is no pool at " + options.pool_path, "give --pool_size in bytes to make one");
}

template <class Recipe, class Medium, class... MediumArguments>
[[nodiscard]] std::unique_ptr<tree_api> create_on(std::string_view name, const tree_options_t& options,
                                                  const MediumArguments&... of_the_medium) {
  if (options.value_size == word_bytes && options.key_size == word_bytes)
    return std::make_unique<tree_of_words<Medium, Recipe>>(name, of_the_medium...);
  return make_tree_of_strings(name, options, std::make_unique<words_of_recipe<Medium, Recipe>>(of_the_medium...));
}

}  // namespace detail

// The tree of `name` ("fast_fair", ...), for its library's create_tree. Throws pmlab::error, and also prints it to
// stderr, since PiBench does not: sizes that are not offered, no pool and no size to make one, and the errors of
// media::pmem and the index for a pool that they cannot open.
template <class Recipe>
[[nodiscard]] tree_api* create(std::string_view name, const tree_options_t& options) {
  return saying(name, [&] {
    check_sizes(options);
    if (options.pool_path.empty()) return with_chosen_interface(detail::create_on<Recipe, media::dram>(name, options));
    detail::check_pool(options);
    const media::pmem_options pool{.create_bytes = options.pool_size, .bypass_msync = true};
    // A damaged pool must not crash PiBench. One that is as it was closed opens once: the index checks its own words.
    if (std::error_code ignored;
        std::filesystem::exists(options.pool_path, ignored) && !media::pmem::is_as_closed(options.pool_path))
      media::probe_opening(options.pool_path, media::time_to_probe(options.pool_path), [&] {
        constexpr media::pmem_options to_try{.huge_pages = false, .reserve_space = false, .bypass_msync = true};
        static_cast<void>(detail::create_on<Recipe, media::pmem>(name, options, options.pool_path, to_try));
      });
    return with_chosen_interface(detail::create_on<Recipe, media::pmem>(name, options, options.pool_path, pool));
  });
}

}  // namespace pmlab::pibench
