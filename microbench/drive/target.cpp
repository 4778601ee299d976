#include "microbench/drive/target.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/blocks/timed.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/devices/drive_file.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/removed_on_interrupt.hpp"
#include "microbench/drive/no_bytes.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace pmlab::drive {
namespace {

constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;

class real_target : public target {
 public:
  [[nodiscard]] std::uint64_t now() noexcept override { return clock_.now(); }

 private:
  const media::fast_clock& clock_ = media::fast_clock::instance();
};

class memory_target final : public real_target {
 public:
  explicit memory_target(std::uint64_t bytes)
      : device_(std::in_place_type<blocks::memory>, blocks::geometry{.blocks = bytes / blocks::least_block_bytes,
                                                                     .block_bytes = blocks::least_block_bytes,
                                                                     .volatile_cache = false}) {
    // So that no case is about the kernel's first touch of a page.
    blocks::synchronous drive(device_);
    const blocks::buffer zeros(megabyte);
    for (std::uint64_t at = 0; at < bytes; at += megabyte) drive.write(at / blocks::least_block_bytes, zeros.bytes());
  }
  [[nodiscard]] blocks::any_device& device() noexcept override { return device_; }

 private:
  blocks::any_device device_;
};

class file_target final : public real_target {
 public:
  file_target(std::string path, const target_options& options) : path_(std::move(path)) {
    const bool exists = std::filesystem::exists(path_);
    if (exists && !options.overwrite)
      throw error(fmt::format("{} exists, and this suite writes to it", path_),
                  "give --overwrite if its content is not needed, or name a new file");
    if (!exists) {
      made_.emplace(path_);
      blocks::create_file(path_, options.bytes);
    }
    open();
  }
  file_target(const file_target&) = delete;
  file_target& operator=(const file_target&) = delete;
  ~file_target() override {
    device_.reset();
    if (made_) std::remove(path_.c_str());
  }

  [[nodiscard]] blocks::any_device& device() noexcept override { return *device_; }
  [[nodiscard]] std::string path() const override { return path_; }
  [[nodiscard]] std::optional<blocks::drive_facts> facts() const override { return facts_; }
  [[nodiscard]] std::string way() const override { return way_; }
  [[nodiscard]] std::vector<std::string> remarks() const override { return remarks_; }

 private:
  // With blocks as small as the drive has them.
  void open() {
    blocks::file_options options{.block_bytes = blocks::least_block_bytes};
    const auto try_it = [&] { device_.emplace(std::in_place_type<blocks::file>, path_, options); };
    try {
      try_it();
    } catch (const error&) {
      options.block_bytes = 4096;
      try_it();
    }
    const blocks::file& opened = *device_->get<blocks::file>();
    facts_ = opened.facts();
    way_ = opened.way();
    if (!opened.uses_io_uring()) remarks_.push_back("io_uring is not used: " + way_);
    if (facts_->file_system == "tmpfs") remarks_.emplace_back("a file on tmpfs is memory, not a drive");
  }

  std::string path_;
  std::optional<removed_on_interrupt> made_;
  std::optional<blocks::any_device> device_;
  std::optional<blocks::drive_facts> facts_;
  std::string way_;
  std::vector<std::string> remarks_;
};

// With the drive in the state that datasheets are measured in: full, and for random writes steady.
template <class Drive, class Clock>
class modelled_target : public target {
 public:
  template <class... Arguments>
  explicit modelled_target(std::uint64_t bytes, const blocks::drive_profile& profile, Arguments&&... arguments)
      : device_(std::in_place_type<Drive>, profile, std::forward<Arguments>(arguments)...,
                blocks::shape_of(profile, bytes, blocks::least_block_bytes)) {}

  [[nodiscard]] blocks::any_device& device() noexcept override { return device_; }
  void prepare(const drive_case& c) override {
    if (c.what == access::write && c.where == order::random)
      drive().model().precondition();
    else
      drive().model().fill();
    drive().model().reset_counts();
  }
  [[nodiscard]] std::string scale() const override { return drive().model().scale().text(); }
  [[nodiscard]] std::optional<double> amplification() const override {
    const double found = drive().model().counts().amplification();
    return found > 0 ? std::optional(found) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> remarks() const override {
    std::vector<std::string> all{"the drive is modelled: " + scale()};
    if (std::string doubt = drive().warning(); !doubt.empty()) all.push_back(std::move(doubt));
    return all;
  }

 private:
  [[nodiscard]] Drive& drive() const { return *device_.template get<Drive>(); }

  mutable blocks::any_device device_;
};

using on_real_clock = blocks::emulated<no_bytes>;
using on_virtual_clock = blocks::timed<no_bytes, blocks::virtual_clock>;

class emulated_target final : public modelled_target<on_real_clock, blocks::emulated_clock> {
 public:
  using modelled_target::modelled_target;
  [[nodiscard]] std::uint64_t now() noexcept override { return clock_.now(); }

 private:
  blocks::emulated_clock clock_;
};

struct owned_time {
  blocks::virtual_time time;  // outlives the drive
};

class simulated_target final : private owned_time, public modelled_target<on_virtual_clock, blocks::virtual_clock> {
 public:
  simulated_target(std::uint64_t bytes, const blocks::drive_profile& profile)
      : modelled_target(bytes, profile, blocks::virtual_clock(time)) {}
  [[nodiscard]] std::uint64_t now() noexcept override { return time.now(); }
  [[nodiscard]] bool virtual_clock() const noexcept override { return true; }
};

}  // namespace

std::unique_ptr<target> open_target(const device_spec& spec, const target_options& options) {
  if (options.bytes < 2 * megabyte || options.bytes % megabyte != 0)
    throw error(fmt::format("a device of {} bytes", options.bytes),
                "give --device-bytes a multiple of 1M, at least 2M");
  switch (spec.which) {
    case device_spec::kind::memory: return std::make_unique<memory_target>(options.bytes);
    case device_spec::kind::file: return std::make_unique<file_target>(spec.path, options);
    case device_spec::kind::emulated:
      return std::make_unique<emulated_target>(options.bytes, blocks::load_drive(spec.profile));
    case device_spec::kind::simulated:
      return std::make_unique<simulated_target>(options.bytes, blocks::load_drive(spec.profile));
  }
  return nullptr;
}

}  // namespace pmlab::drive
