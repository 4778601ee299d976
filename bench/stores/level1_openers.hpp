// The definition of open_level1: instantiated in a source of its own for each medium.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include "bench/stores/level1_index.hpp"

#include <string>

namespace pmlab::store_bench {
namespace detail {

template <class Index, class Medium>
struct opened_index {
  opened_index(Medium& medium, std::string_view name) : index(Index::open(medium, name)), shown(index, medium) {}
  Index index;
  erased::erased_index<Index, Medium> shown;
};

// HybridIndex+: the tree on the medium is the truth, a hash table in DRAM answers for points.
template <class Medium>
struct opened_hybrid {
  using index_type =
      hybrid::hybrid_index<indexes::cceh<media::dram>, indexes::fast_fair<Medium>, hybrid::primary::tree>;

  opened_hybrid(Medium& medium, std::string_view name)
      : root(name),
        index(index_type::open(dram, medium, {.how = hybrid::update::synchronous, .name = root})),
        shown_medium(medium),
        shown(index, shown_medium) {}
  std::string root;
  media::dram dram;
  index_type index;
  erased::erased_medium<Medium> shown_medium;
  erased::erased_layer<index_type> shown;
};

template <class Opened, class Medium>
std::shared_ptr<erased::any_index> open_as(Medium& medium, std::string_view name) {
  const auto opened = std::make_shared<Opened>(medium, name);
  return {opened, &opened->shown};
}

}  // namespace detail

template <class Medium>
std::shared_ptr<erased::any_index> open_level1(std::string_view index, Medium& medium, std::string_view name) {
  using namespace indexes;
  if (index == "cceh") return detail::open_as<detail::opened_index<cceh<Medium>, Medium>>(medium, name);
  if (index == "skip_list") return detail::open_as<detail::opened_index<skip_list<Medium>, Medium>>(medium, name);
  if (index == "fast_fair") return detail::open_as<detail::opened_index<fast_fair<Medium>, Medium>>(medium, name);
  if (index == "fp_tree") return detail::open_as<detail::opened_index<fp_tree<Medium>, Medium>>(medium, name);
  if (index == "hybrid") return detail::open_as<detail::opened_hybrid<Medium>>(medium, name);
  throw error("there is no level-1 index '" + std::string(index) + "'",
              "choose cceh, skip_list, fast_fair, fp_tree or hybrid");
}

}  // namespace pmlab::store_bench
