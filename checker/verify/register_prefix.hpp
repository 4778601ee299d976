// One line makes a store on two drives, of whose changes a crash may take the newest, a subject of verification:
//
//   const bool registered = pmlab::verify::register_prefix<my_store>();
//
// `my_store<Drive>` is a prefix_target with
//
//   static constexpr std::string_view layout_name                     its name
//   static constexpr std::array<blocks::geometry, 2> drives           that it is to run on
//   static constexpr std::uint64_t at_most_milliseconds               see prefix_kind
//   my_store(Drive&, Drive&)                                          opens it: recovery
#pragma once

#include "checker/verify/crash_image.hpp"
#include "checker/verify/prefix.hpp"
#include "checker/verify/target.hpp"

#include <memory>
#include <string>

#if defined(PMLAB_SIMULATED)
#include "checker/simulator/simulated_drive.hpp"
#endif

extern "C" {
// As checker/verify/register_subject.hpp.
void pmlab_verify_register(const pmlab::verify::subject* part);
}

namespace pmlab::verify {

#if defined(PMLAB_SIMULATED)
// Holds the drives while the store is open.
struct simulated_pair {
  simulator::simulated_drive first{0};
  simulator::simulated_drive second{1};
};
template <template <class> class Store>
class prefix_on_machine final : private simulated_pair, public Store<simulator::simulated_drive> {
 public:
  prefix_on_machine() : Store<simulator::simulated_drive>(simulated_pair::first, simulated_pair::second) {}
};
#endif

// As register_volume.
template <template <class> class Store>
bool register_prefix(bool is_mutant = false) {
  using on_image = Store<image_drive>;
  subject part;
  part.name = std::string(on_image::layout_name);
  part.drives = {on_image::drives[0], on_image::drives[1]};
  part.is_mutant = is_mutant;
  const auto made = std::make_shared<prefix_kind>();
  made->at_most_milliseconds = on_image::at_most_milliseconds;
#if defined(PMLAB_SIMULATED)
  made->open_simulated = []() -> std::unique_ptr<prefix_target> {
    return std::make_unique<prefix_on_machine<Store>>();
  };
#endif
  made->open_image = [](crash_image& image) -> std::unique_ptr<prefix_target> {
    return std::make_unique<on_image>(image.drive(0), image.drive(1));
  };
  part.prefix = made;
  pmlab_verify_register(&part);
  return true;
}

}  // namespace pmlab::verify
