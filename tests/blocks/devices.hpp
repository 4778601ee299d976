// The devices that all scenarios run on. Add a device here: a type with `make(shape)`, which returns something that
// dereferences to the device.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/recorded.hpp>

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace pmlab::tests {

struct in_memory {
  using device = blocks::memory;
  std::unique_ptr<device> make(const blocks::geometry& shape) { return std::make_unique<device>(shape); }
};

struct counted_memory {
  using device = blocks::counted<blocks::memory>;
  std::unique_ptr<device> make(const blocks::geometry& shape) { return std::make_unique<device>(shape); }
};

struct recorded_memory {
  using device = blocks::recorded<blocks::memory>;
  std::unique_ptr<device> make(const blocks::geometry& shape) {
    return std::make_unique<device>(folder.file("log"), shape);
  }
  temporary_folder folder;
};

struct faultless_memory {
  using device = blocks::faulty<blocks::memory>;
  std::unique_ptr<device> make(const blocks::geometry& shape) {
    return std::make_unique<device>(std::uint64_t{1}, shape);
  }
};

struct memory_behind_virtual_calls {
  using device = blocks::any_device;
  std::unique_ptr<device> make(const blocks::geometry& shape) {
    return std::make_unique<device>(std::in_place_type<blocks::memory>, shape);
  }
};

using all_devices =
    ::testing::Types<in_memory, counted_memory, recorded_memory, faultless_memory, memory_behind_virtual_calls>;

}  // namespace pmlab::tests
