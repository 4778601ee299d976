// One line makes a store of keys on memory and a drive a subject of verification:
//
//   const bool registered = pmlab::verify::register_store<my_store>();
//
// `my_store<Medium, Drive>` is an index (pmlab/indexes/index.hpp) that is made of both, in place of `open`:
//
//   static constexpr blocks::geometry drive     of the drive that it is to run on
//   my_store(Medium&, Drive&)                   opens it: recovery
//   static constexpr bool fills_up              optional; true: the drive is so small that it is full in a round
//   std::size_t iterate(std::span<std::uint64_t>)   optional; as target::iterate
//
// Build the file into a shared object by pmlab_simulate, and give it to `pmlab verify --subject`.
#pragma once

#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/crash_image.hpp"
#include "checker/verify/register_subject.hpp"
#include "checker/verify/target.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if defined(PMLAB_SIMULATED)
#include "checker/simulator/simulated_drive.hpp"
#endif

namespace pmlab::verify {

// The same as an index that opens itself on `Parts`, which has a medium and a drive.
template <class Store, class Parts>
class opened_store : public Store {
 public:
  static opened_store open(Parts& parts, std::string_view /*name*/ = Store::layout_name) { return opened_store(parts); }

 private:
  explicit opened_store(Parts& parts) : Store(parts.medium, parts.drive) {}
};

#if defined(PMLAB_SIMULATED)
struct simulated_parts {
  simulated_parts() : drive(0) {}
  simulator::simulated medium;
  simulator::simulated_drive drive;
};
#endif

struct image_parts {
  image_medium& medium;
  image_drive& drive;
};

// Holds the parts of an image while a target is open on them.
template <class Index>
class store_on_image final : public target {
 public:
  explicit store_on_image(crash_image& image) : parts_{image.memory(), image.drive(0)}, inner_(parts_) {}

  answer perform(const step& s) override { return inner_.perform(s); }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) override {
    inner_.find_batch(keys, values);
  }
  std::size_t load(std::span<const indexes::entry> ascending) override { return inner_.load(ascending); }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) override { return inner_.scan(from, out); }
  std::size_t iterate(std::span<std::uint64_t> out) override { return inner_.iterate(out); }
  void entries(std::vector<indexes::entry>& out) override { inner_.entries(out); }
  std::string check() override { return inner_.check(); }
  std::string check_opened() override { return inner_.check_opened(); }
  std::optional<std::uint64_t> held_bytes() override { return inner_.held_bytes(); }

 private:
  image_parts parts_;
  typed_target<Index, image_parts> inner_;
};

// As register_subject: each half is compiled by itself; a shared object that is loaded has both.
template <template <class, class> class Store>
bool register_store(bool is_mutant = compiled_as_mutant) {
  using on_image = opened_store<Store<image_medium, image_drive>, image_parts>;
  subject part;
  part.name = std::string(on_image::layout_name);
  part.ordered = part.image_is_ordered = indexes::ordered_index<on_image>;
  part.loads = indexes::loadable_index<on_image>;
  part.iterates = iterated_index<on_image>;
  part.is_mutant = is_mutant;
  if constexpr (requires { on_image::fills_up; }) part.fills_up = on_image::fills_up;
  part.drives = {on_image::drive};
#if defined(PMLAB_SIMULATED)
  part.open_simulated = []() -> std::unique_ptr<target> {
    using on_machine = opened_store<Store<simulator::simulated, simulator::simulated_drive>, simulated_parts>;
    return std::make_unique<typed_target<on_machine, simulated_parts>>();
  };
#endif
  part.open_image_on_drives = [](crash_image& image) -> std::unique_ptr<target> {
    return std::make_unique<store_on_image<on_image>>(image);
  };
  pmlab_verify_register(&part);
  return true;
}

}  // namespace pmlab::verify
