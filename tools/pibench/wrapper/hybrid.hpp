// Recipe of a library: a hybrid index, whose primary is in the medium and whose replica is in DRAM. The pool is the
// primary's own, and its library opens it too.
#pragma once

#include "tools/pibench/wrapper/environment.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/hybrid/options.hpp>
#include <pmlab/hybrid/specification.hpp>
#include <pmlab/media/dram.hpp>

#include <string>
#include <string_view>

namespace pmlab::pibench {

// `Hash` and `Tree`: class templates whose first parameter is the medium, their others defaulted. The options are those
// of hybrid(hash=...,tree=...,...) but the halves themselves, in the environment variable PMLAB_HYBRID.
template <hybrid::primary Primary, template <class...> class Hash, template <class...> class Tree>
class of_halves {
 public:
  // Throws pmlab::error: PMLAB_HYBRID is not understood.
  of_halves() : options_(from_environment("PMLAB_HYBRID", "", parse)) {}

  // The primary is the index `name` in `medium`; empty: of its layout's name. Throws the exceptions of the halves;
  // pmlab::error: no threads.
  template <class Medium>
  [[nodiscard]] auto open(Medium& medium, std::string_view name = {}) {
    hybrid::options named = options_;
    named.name = name;
    if constexpr (Primary == hybrid::primary::hash)
      return hybrid::hybrid_index<Hash<Medium>, Tree<media::dram>, Primary>::open(medium, replica_, named);
    else
      return hybrid::hybrid_index<Hash<media::dram>, Tree<Medium>, Primary>::open(replica_, medium, named);
  }

 private:
  static hybrid::options parse(const std::string& text) {
    const std::string halves =
        Primary == hybrid::primary::hash ? "hash=cceh@pmem,tree=fast_fair@dram" : "hash=cceh@dram,tree=fast_fair@pmem";
    return hybrid::parse_description(parse_spec("hybrid(" + halves + (text.empty() ? "" : "," + text) + ")")).how;
  }

  hybrid::options options_;
  media::dram replica_;
};

}  // namespace pmlab::pibench
