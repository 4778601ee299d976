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

#include "checker/verify/crash_image.hpp"
#include "checker/verify/prefix.hpp"
#include "checker/verify/target.hpp"

#include <memory>
#include <string>

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
#endif

// Its name, drives and bound.
template <class OnImage>
subject described_prefix(bool is_mutant, std::shared_ptr<prefix_kind>& made) {
  subject part;
  part.name = std::string(OnImage::layout_name);
  part.drives = {OnImage::drives[0], OnImage::drives[1]};
  part.small_drives = {OnImage::small_drives[0], OnImage::small_drives[1]};
  part.is_mutant = is_mutant;
  made = std::make_shared<prefix_kind>();
  made->at_most_milliseconds = OnImage::at_most_milliseconds;
  part.prefix = made;
  return part;
}

// Registers a store as register_volume does.
template <template <class> class Store>
bool register_prefix(bool is_mutant = false) {
  using on_image = Store<image_drive>;
  std::shared_ptr<prefix_kind> made;
  const subject part = described_prefix<on_image>(is_mutant, made);
#if defined(PMLAB_SIMULATED)
  made->open_simulated = []() -> std::unique_ptr<prefix_target> {
    return std::make_unique<prefix_on_machine<Store>>();
  };
#endif
  made->open_image = [](crash_image& image) -> std::unique_ptr<prefix_target> {
    return std::make_unique<on_image>(image.drive(0), image.drive(1));
  };
  pmlab_verify_register(&part);
  return true;
}

// The same with persistent memory.
template <template <class, class> class Store>
bool register_prefix_on_memory(bool is_mutant = false) {
  using on_image = Store<image_medium, image_drive>;
  std::shared_ptr<prefix_kind> made;
  const subject part = described_prefix<on_image>(is_mutant, made);
#if defined(PMLAB_SIMULATED)
  made->open_simulated = []() -> std::unique_ptr<prefix_target> {
    return std::make_unique<prefix_on_machine_with_memory<Store>>();
  };
#endif
  made->open_image = [](crash_image& image) -> std::unique_ptr<prefix_target> {
    return std::make_unique<on_image>(image.memory(), image.drive(0), image.drive(1));
  };
  pmlab_verify_register(&part);
  return true;
}

}  // namespace pmlab::verify
