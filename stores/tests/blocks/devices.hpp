// The devices that all scenarios run on. Add a device here: a type with `make(shape)`, which returns something that
// dereferences to the device.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/recorded.hpp>
#include <pmlab/blocks/timed.hpp>

#include "stores/tests/blocks/scratch_file.hpp"
#include "stores/tests/blocks/small_drive.hpp"
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

template <blocks::file_io Io>
struct on_a_file {
  using device = blocks::file;
  std::unique_ptr<device> make(const blocks::geometry& shape) {
    const scratch_file file(shape.bytes());
    // It keeps its file without the name.
    return std::make_unique<device>(file.path(), blocks::file_options{.block_bytes = shape.block_bytes, .io = Io});
  }
};
using on_a_file_through_io_uring = on_a_file<blocks::file_io::io_uring>;
using on_a_file_through_threads = on_a_file<blocks::file_io::threads>;

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

struct emulated_drive {
  using device = blocks::emulated<blocks::memory>;
  std::unique_ptr<device> make(const blocks::geometry& shape) { return std::make_unique<device>(small_drive(), shape); }
};

// Without capacitors: a flush is more than a command. Each queue has a time of its own, as its thread has.
struct drive_in_virtual_time {
  struct device : blocks::timed<blocks::memory, blocks::virtual_clock> {
    using timed::timed;
    struct own_time {
      blocks::virtual_time time;
    };
    class queue : own_time, public timed::queue {
     public:
      queue(device& drive, unsigned depth) : timed::queue(drive, depth, blocks::virtual_clock(time)) {}
    };
  };
  std::unique_ptr<device> make(const blocks::geometry& shape) {
    blocks::drive_profile profile = small_drive();
    profile.capacitor = false;
    return std::make_unique<device>(profile, blocks::virtual_clock(time), shape);
  }
  blocks::virtual_time time;
};

using all_devices =
    ::testing::Types<in_memory, on_a_file_through_io_uring, on_a_file_through_threads, counted_memory, recorded_memory,
                     faultless_memory, memory_behind_virtual_calls, emulated_drive, drive_in_virtual_time>;

}  // namespace pmlab::tests
