// One line makes a store of blocks a subject of verification:
//
//   const bool registered = pmlab::verify::register_volume<my_store>();
//
// `my_store<Medium, Drive>` is a volume on a medium and a block device:
//
//   static constexpr std::string_view layout_name      its name
//   static constexpr verify::volume_shape shape        of the volume
//   static constexpr blocks::geometry drive            of the drive that it is to run on
//   static constexpr blocks::geometry second_drive     optional: of another drive
//   static constexpr blocks::geometry small_drive      optional: in place of `drive`, one that is soon full
//   my_store(Medium&, Drive&)                          opens it: recovery; with a second drive,
//                                                      my_store(Medium&, Drive&, Drive&)
//   bool write(first, data), void read(first, data)    and, where it has them, write_group, discard, check, held_bytes:
//                                                      as verify::volume_target
//
// Build the file into a shared object by pmlab_simulate, and give it to `pmlab verify --subject`.
#pragma once

#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/crash_image.hpp"
#include "checker/verify/target.hpp"
#include "checker/verify/volume.hpp"
#include <pmlab/blocks/device.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
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

template <class Store>
concept has_second_drive = requires {
  Store::second_drive;
};

template <class Store, class Medium, class Drive>
class typed_volume final : public volume_target {
 public:
  // On the memory and the drives that the machine observes.
  typed_volume() requires(std::default_initializable<Medium> && !has_second_drive<Store>)
      : own_medium_(std::make_unique<Medium>()),
        own_drive_(std::make_unique<Drive>()),
        store_(*own_medium_, *own_drive_) {}
  typed_volume() requires(std::default_initializable<Medium>&& has_second_drive<Store>)
      : own_medium_(std::make_unique<Medium>()),
        own_drive_(std::make_unique<Drive>(0)),
        own_second_drive_(std::make_unique<Drive>(1)),
        store_(*own_medium_, *own_drive_, *own_second_drive_) {}
  template <class... Drives>
  explicit typed_volume(Medium& medium, Drives&... drives) : store_(medium, drives...) {}

  bool write(std::uint64_t first, std::span<const std::byte> data) override { return store_.write(first, data); }
  void read(std::uint64_t first, std::span<std::byte> data) override { store_.read(first, data); }
  bool write_group(std::span<const block_range> ranges, std::span<const std::byte> data) override {
    if constexpr (requires { store_.write_group(ranges, data); }) return store_.write_group(ranges, data);
    return false;
  }
  bool discard(block_range range) override {
    if constexpr (requires { store_.discard(range); }) return store_.discard(range);
    return false;
  }
  std::string check() override {
    if constexpr (requires { std::string(store_.check()); }) return store_.check();
    return {};
  }
  std::optional<std::uint64_t> held_bytes() override {
    if constexpr (requires { store_.held_bytes(); }) return store_.held_bytes();
    return std::nullopt;
  }

 private:
  std::unique_ptr<Medium> own_medium_;
  std::unique_ptr<Drive> own_drive_;
  std::unique_ptr<Drive> own_second_drive_;
  Store store_;
};

// As register_subject: each half is compiled by itself; a shared object that is loaded has both. `is_mutant`: see
// there.
template <template <class, class> class Store>
bool register_volume(bool is_mutant = compiled_as_mutant) {
#if defined(PMLAB_SIMULATED)
  using medium = simulator::simulated;
  using drive = simulator::simulated_drive;
#else
  using medium = image_medium;
  using drive = image_drive;
#endif
  using store = Store<medium, drive>;
  subject part;
  part.name = std::string(store::layout_name);
  part.drives = {store::drive};
  if constexpr (has_second_drive<store>) part.drives.push_back(store::second_drive);
  if constexpr (requires { store::small_drive; }) {
    part.small_drives = part.drives;
    part.small_drives.front() = store::small_drive;
  }
  part.is_mutant = is_mutant;
  const auto made = std::make_shared<volume_kind>();
  made->shape = store::shape;
#if defined(PMLAB_SIMULATED)
  made->open_simulated = []() -> std::unique_ptr<volume_target> {
    return std::make_unique<typed_volume<store, medium, drive>>();
  };
#endif
  made->open_image = [](crash_image& image) -> std::unique_ptr<volume_target> {
    using typed = typed_volume<Store<image_medium, image_drive>, image_medium, image_drive>;
    if constexpr (has_second_drive<store>)
      return std::make_unique<typed>(image.memory(), image.drive(0), image.drive(1));
    else
      return std::make_unique<typed>(image.memory(), image.drive(0));
  };
  part.volume = made;
  pmlab_verify_register(&part);
  return true;
}

}  // namespace pmlab::verify
