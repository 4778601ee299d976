// Opens the memory that PiBench's options name, and the index in it.
#include "tools/pibench/wrapper/create.hpp"
#include "tools/pibench/wrapper/message.hpp"
#include "tools/pibench/wrapper/trees.hpp"
#include "tools/pibench/wrapper/with_bulk_load.hpp"
#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/probe_pool.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace pmlab::pibench {
namespace {

constexpr std::size_t word_bytes = 8;

// Throws pmlab::error, in the words of PiBench's options.
void check_pool(const tree_options_t& options) {
  std::error_code failure;
  const bool exists = std::filesystem::exists(options.pool_path, failure);
  if (failure)
    throw error("cannot reach pool " + options.pool_path + ": " + failure.message(),
                remedy_for(failure.value(), "check the path and its permissions"));
  if (options.pool_size == 0 && !exists)
    throw error("there is no pool at " + options.pool_path, "give --pool_size in bytes to make one");
}

std::unique_ptr<tree_api> create_in(const place& memory, std::string_view name, const tree_options_t& options,
                                    make_words* make) {
  std::unique_ptr<words_behind> words = make(memory);
  if (options.value_size != word_bytes || options.key_size != word_bytes)
    return make_tree_of_strings(name, options, std::move(words));
  words_behind& index = *words;
  return index.open_tree(name, std::move(words));
}

}  // namespace

tree_api* create(std::string_view name, const tree_options_t& options, make_words* make) {
  return saying(name, [&] {
    check_sizes(options);
    if (options.pool_path.empty()) return with_chosen_interface(create_in({}, name, options, make));
    check_pool(options);
    const place pool{options.pool_path, {.create_bytes = options.pool_size, .bypass_msync = true}};
    // A damaged pool must not crash PiBench. One that is as it was closed opens once: the index checks its own words.
    if (std::error_code ignored;
        std::filesystem::exists(options.pool_path, ignored) && !media::pmem::is_as_closed(options.pool_path))
      media::probe_opening(options.pool_path, media::time_to_probe(options.pool_path), [&] {
        const place to_try{options.pool_path, {.huge_pages = false, .reserve_space = false, .bypass_msync = true}};
        static_cast<void>(create_in(to_try, name, options, make));
      });
    return with_chosen_interface(create_in(pool, name, options, make));
  });
}

}  // namespace pmlab::pibench
