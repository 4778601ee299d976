// One line adds an index of pmlab to the program:
//
//   const auto registered = pmlab::bench::register_index<pmlab::indexes::cceh>("extendible hash table");
#pragma once

#include <pmlab/indexes/index.hpp>
#include "bench/catalogue/driver.hpp"
#include "bench/catalogue/media_list.hpp"
#include "bench/catalogue/registry.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace pmlab::bench {

// `Index`: a class template whose first parameter is the medium, its others defaulted. It is instantiated for every
// medium of media_list.hpp, so give each index a source file of its own. `pool_bytes_per_entry`: as in the description.
template <template <class...> class Index>
registration register_index(std::string what, keeps kept = keeps::entries,
                            std::uint64_t pool_bytes_per_entry = index_description().pool_bytes_per_entry) {
  using on_some = Index<some_medium>;
  static_assert(indexes::point_index<on_some>);
  index_description d;
  d.name = on_some::layout_name;
  d.root_name = d.name;
  d.what = std::move(what);
  d.threading = "any number of threads";
  d.kept = kept;
  d.pool_bytes_per_entry = pool_bytes_per_entry;
  d.ordered = indexes::ordered_index<on_some>;
  d.string_form = indexes::string_form_over<on_some>;
  d.refusal = [](workload::operation_kind kind, unsigned) -> std::string {
    const bool lacks = kind == workload::operation_kind::scan && !indexes::ordered_index<on_some>;
    return lacks ? "a hash table has no order to scan" : "";
  };
  d.make = [](const subject_setup& setup) {
    std::unique_ptr<subject> made;
    for_each_medium([&]<class Medium>(medium_tag<Medium>) {
      if (medium_traits<Medium>::is_meant_by(setup.medium))
        made = std::make_unique<driver<Index<Medium>, Medium>>(setup);
    });
    return made;
  };
#if !defined(PMLAB_SIMULATED)
  d.layout_version = on_some::layout_version;
  d.open_root = [](media::pmem& pool, std::string_view name) -> std::shared_ptr<erased::any_index> {
    using on_pool = Index<media::pmem>;
    struct opened {
      opened(media::pmem& medium, std::string_view root) : index(on_pool::open(medium, root)), shown(index, medium) {}
      on_pool index;
      erased::erased_index<on_pool, media::pmem> shown;
    };
    const auto both = std::make_shared<opened>(pool, name);
    return {both, &both->shown};
  };
  using each_entry = index_description::each_entry;
  if constexpr (requires(media::pmem & pool, const each_entry& e) { Index<media::pmem>::salvage(pool, "", e); })
    d.salvage_root = [](media::pmem& pool, std::string_view name, const each_entry& function) {
      Index<media::pmem>::salvage(pool, name, function);
    };
#endif
  return registration(std::move(d));
}

}  // namespace pmlab::bench
