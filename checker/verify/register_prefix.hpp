// One line makes a store on two drives, of whose changes a crash may take the newest, a subject of verification:
//
//   const bool registered = pmlab::verify::register_prefix<my_store>();
//
// `my_store<Drive>` is a prefix_target with
//
//   static constexpr std::string_view layout_name                     its name
//   static constexpr std::array<blocks::geometry, 2> drives           that it is to run on
//   static constexpr std::array<blocks::geometry, 2> small_drives     likewise, that a few large values fill
//   static constexpr std::uint64_t at_most_milliseconds               see prefix_kind
//   my_store(Drive&, Drive&)                                          opens it: recovery
//
// One with persistent memory is registered by register_prefix_on_memory, and is `my_store<Medium, Drive>`, made of
// (Medium&, Drive&, Drive&).
#pragma once

#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/crash_image.hpp"
#include "checker/verify/prefix.hpp"
#include "checker/verify/target.hpp"

#include <memory>
#include <string>
#include <type_traits>

#if defined(PMLAB_SIMULATED)
#include "checker/simulator/simulated.hpp"
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

struct simulated_memory {
  simulator::simulated medium;
};
template <template <class, class> class Store>
class prefix_on_machine_with_memory final : private simulated_memory,
                                            private simulated_pair,
                                            public Store<simulator::simulated, simulator::simulated_drive> {
 public:
  prefix_on_machine_with_memory()
      : Store<simulator::simulated, simulator::simulated_drive>(simulated_memory::medium, simulated_pair::first,
                                                                simulated_pair::second) {}
};
#else
template <template <class> class Store>
using prefix_on_machine = void;
template <template <class, class> class Store>
using prefix_on_machine_with_memory = void;
#endif

// `OnMachine`: void, but for the half of the machine. open_image(image) is an `OnImage`.
template <class OnImage, class OnMachine>
bool register_prefix_kind(bool is_mutant, std::unique_ptr<prefix_target> (*open_image)(crash_image&)) {
  subject part;
  part.name = std::string(OnImage::layout_name);
  part.drives = {OnImage::drives[0], OnImage::drives[1]};
  part.small_drives = {OnImage::small_drives[0], OnImage::small_drives[1]};
  part.is_mutant = is_mutant;
  const auto made = std::make_shared<prefix_kind>();
  made->at_most_milliseconds = OnImage::at_most_milliseconds;
  if constexpr (!std::is_void_v<OnMachine>)
    made->open_simulated = []() -> std::unique_ptr<prefix_target> { return std::make_unique<OnMachine>(); };
  made->open_image = open_image;
  part.prefix = made;
  pmlab_verify_register(&part);
  return true;
}

// Registers a store as register_volume does.
template <template <class> class Store>
bool register_prefix(bool is_mutant = compiled_as_mutant) {
  using on_image = Store<image_drive>;
  return register_prefix_kind<on_image, prefix_on_machine<Store>>(
      is_mutant, [](crash_image& image) -> std::unique_ptr<prefix_target> {
        return std::make_unique<on_image>(image.drive(0), image.drive(1));
      });
}

// The same with persistent memory.
template <template <class, class> class Store>
bool register_prefix_on_memory(bool is_mutant = compiled_as_mutant) {
  using on_image = Store<image_medium, image_drive>;
  return register_prefix_kind<on_image, prefix_on_machine_with_memory<Store>>(
      is_mutant, [](crash_image& image) -> std::unique_ptr<prefix_target> {
        return std::make_unique<on_image>(image.memory(), image.drive(0), image.drive(1));
      });
}

}  // namespace pmlab::verify
