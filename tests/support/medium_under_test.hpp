// Makes a medium of any kind for a test, of a given size, and reopens the durable ones.
#pragma once

#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "support/restartable_medium.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {

// The arguments of a medium: options for `Medium(Arguments...)`.
template <class Medium>
struct medium_under_test {
  // `capacity_bytes`: 0: enough for any test.
  explicit medium_under_test(std::uint64_t capacity_bytes = 0) : medium(make(capacity_bytes)) {}

  static std::unique_ptr<Medium> make(std::uint64_t capacity_bytes) {
    media::dram_options options;
    options.capacity_bytes = capacity_bytes;
    options.huge_pages = false;
    return std::make_unique<Medium>(options);
  }

  std::unique_ptr<Medium> medium;
};

template <>
struct medium_under_test<restartable_medium> {
  explicit medium_under_test(std::uint64_t capacity_bytes = 0)
      : medium(std::make_unique<restartable_medium>(capacity_bytes == 0 ? std::size_t{256} << 20 : capacity_bytes)) {}

  // Its content at another address.
  void reopen() {
    auto next = std::make_unique<restartable_medium>(medium->used().capacity_bytes);
    next->restore(*medium);
    medium = std::move(next);
  }

  std::unique_ptr<restartable_medium> medium;
};

// A pool in a folder of its own.
template <>
struct medium_under_test<media::pmem> {
  explicit medium_under_test(std::uint64_t capacity_bytes = 0) {
    media::pmem_options options;
    options.create_bytes = capacity_bytes == 0 ? std::uint64_t{128} << 20 : capacity_bytes;
    options.huge_pages = false;
    medium = std::make_unique<media::pmem>(path(), options);
  }

  [[nodiscard]] std::string path() const { return folder.file("pool"); }

  void reopen() {
    medium.reset();
    media::pmem_options options;
    options.huge_pages = false;
    medium = std::make_unique<media::pmem>(path(), options);
  }

  temporary_folder folder;
  std::unique_ptr<media::pmem> medium;
};

}  // namespace pmlab::tests
