// Recipe of a library: the asynchronous cache in front of an index. The pool is the index's own, and its library opens
// it too.
#pragma once

#include "tools/pibench/wrapper/environment.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/options.hpp>

#include <string>
#include <string_view>

namespace pmlab::pibench {

// `Index`: a class template whose first parameter is the medium, its others defaulted. The options are those of
// cache(INDEX,...), in the environment variable PMLAB_CACHE; without it: 64k entries, looked up in series.
template <template <class...> class Index>
class cached {
 public:
  // Throws pmlab::error: PMLAB_CACHE is not understood.
  cached() : options_(from_environment("PMLAB_CACHE", "capacity=64k", parse)) {}

  // In front of the index `name` in `medium`; empty: of its layout's name. Throws the exceptions of Index::open;
  // pmlab::error: no threads.
  template <class Medium>
  [[nodiscard]] auto open(Medium& medium, std::string_view name = {}) const {
    using inner = Index<Medium>;
    return cache::async_cache<inner, cache::chosen_eviction>::open(medium, name.empty() ? inner::layout_name : name,
                                                                   options_);
  }

 private:
  static cache::options parse(const std::string& text) {
    const spec given = parse_spec("cache(the_index," + text + ")");
    cache::options o = cache::parse_options(given);
    if (!given.option("capacity")) o.size = {};
    if (o.size.in == cache::capacity::unit::share)
      throw error("no share can be taken of an index that is yet to be loaded",
                  "give capacity=100k (entries) or capacity=64MiB");
    return o;
  }

  cache::options options_;
};

}  // namespace pmlab::pibench
