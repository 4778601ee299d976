// One line adds an index that several hosts share to the program:
//
//   const auto registered = pmlab::bench::register_shared_index<pmlab::pod::shared_ring>("shared_ring", "a map");
#pragma once

#include <pmlab/indexes/index.hpp>
#include "bench/catalogue/driver.hpp"
#include "bench/catalogue/media_list.hpp"
#include "bench/catalogue/registry.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/calls.hpp"
#endif

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::bench {

#if defined(PMLAB_SIMULATED)

// Each host has opened it: a thread works with its own host's object.
template <class Index>
class joined_hosts {
 public:
  void join(simulated_device& medium) {
    for (unsigned host = 1; host < pmlab_machine_hosts(); ++host) others_.push_back(std::make_unique<joined>(medium));
  }
  // The object of this thread's host; null: it is the first one's.
  [[nodiscard]] Index* index_here() const noexcept {
    const unsigned host = pmlab_machine_host();
    return host == 0 ? nullptr : &others_[host - 1]->index;
  }

 private:
  struct joined {
    explicit joined(simulated_device& medium) : index(Index::open(medium)) {}
    Index index;
  };

  std::vector<std::unique_ptr<joined>> others_;
};

#endif

// `Index`: as in register_index. Others than `name` may have its layout.
template <template <class...> class Index>
registration register_shared_index(std::string name, std::string what) {
  using on_some = Index<some_medium>;
  static_assert(indexes::point_index<on_some> && on_some::shared_by_hosts);
  index_description d;
  d.name = std::move(name);
  d.root_name = on_some::layout_name;
  d.what = std::move(what);
  d.threading = "any number of threads of any number of hosts";
  d.ordered = indexes::ordered_index<on_some>;
  d.string_form = indexes::string_form_over<on_some>;
  d.refusal = [](workload::operation_kind kind, unsigned) -> std::string {
    const bool lacks = kind == workload::operation_kind::scan && !indexes::ordered_index<on_some>;
    return lacks ? "it has no order to scan" : "";
  };
  d.make = [called = d.name](const subject_setup& setup) -> std::unique_ptr<subject> {
#if defined(PMLAB_SIMULATED)
    using index = Index<simulated_device>;
    if (setup.medium.simulated) return std::make_unique<driver<index, simulated_device, joined_hosts<index>>>(setup);
#endif
    throw has_one_host(called, setup.medium);
  };
  return registration(std::move(d), registration::by_hosts());
}

}  // namespace pmlab::bench
