#include "bench/stores/store_device.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/timed.hpp>
#include "bench/devices/drive_file.hpp"
#include "bench/stores/counted_device.hpp"
#include "bench/support/removed_on_interrupt.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace pmlab::store_bench {
namespace {

using detail::block_bytes;
using detail::counted_device;
using detail::touch;

// The clock of an emulated drive, which keeps an account of the CPU time that waiting takes: a short wait looks at the
// clock all the time, a long one sleeps first.
class waiting_clock {
 public:
  static constexpr std::string_view kind = "emulated";
  explicit waiting_clock(std::atomic<std::uint64_t>& waited) noexcept : waited_(&waited) {}

  [[nodiscard]] blocks::picoseconds now() const noexcept { return clock_.now(); }
  void wait_until(blocks::picoseconds time) const noexcept {
    const blocks::picoseconds began = now();
    const bool sleeps = time > began + longest_looking;
    const std::uint64_t cpu = sleeps ? thread_cpu() : 0;
    clock_.wait_until(time);
    // What is later than `time` was no looking: the thread had no core.
    waited_->fetch_add(sleeps ? thread_cpu() - cpu : std::max(time, began) - began, std::memory_order_relaxed);
  }

 private:
  static constexpr blocks::picoseconds longest_looking = 30'000'000;

  // Picoseconds. A call of the kernel: not for short waits.
  static std::uint64_t thread_cpu() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec)) * 1000;
  }

  blocks::emulated_clock clock_;
  std::atomic<std::uint64_t>* waited_;
};

class memory_device final : public counted_device<blocks::memory> {
 public:
  explicit memory_device(std::uint64_t bytes)
      : counted_device(blocks::geometry{.blocks = bytes / block_bytes,
                                        .block_bytes = block_bytes,
                                        .atomic_bytes = block_bytes,
                                        .volatile_cache = false}) {
    touch(counter().inner());
  }
};

struct owned_account {
  std::atomic<std::uint64_t> waited{0};  // outlives the drive
};

using waited_drive = blocks::timed<blocks::memory, waiting_clock>;

class emulated_device final : private owned_account, public detail::modelled_device<waited_drive> {
 public:
  emulated_device(const store_device_options& options, const blocks::drive_profile& profile)
      : modelled_device(options, profile, waiting_clock(waited)) {}
  [[nodiscard]] std::uint64_t waiting_cpu_ns() const noexcept override {
    return waited.load(std::memory_order_relaxed) / 1000;
  }
  [[nodiscard]] std::vector<std::string> remarks() const override {
    std::string doubt = drive().warning();
    return doubt.empty() ? std::vector<std::string>() : std::vector<std::string>{std::move(doubt)};
  }
};

// A file that exists is taken as it is; one that does not is made, and removed at the end.
class file_on_disk {
 public:
  file_on_disk(std::string path, const store_device_options& options) : path_(std::move(path)) {
    std::error_code failure;
    const std::filesystem::file_status status = std::filesystem::status(path_, failure);
    if (status.type() == std::filesystem::file_type::none)
      throw error("cannot reach " + path_ + ": " + failure.message(),
                  remedy_for(failure.value(), "check the path and its permissions"));
    const bool exists = std::filesystem::exists(status);
    if (exists && !options.overwrite)
      throw error(path_ + " exists, and this run writes to it",
                  "give --overwrite if its content is not needed, or name a new file");
    if (exists) return;
    made_.emplace(path_);
    blocks::create_file(path_, options.bytes);
  }
  file_on_disk(const file_on_disk&) = delete;
  file_on_disk& operator=(const file_on_disk&) = delete;
  ~file_on_disk() {
    if (made_) std::remove(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::optional<removed_on_interrupt> made_;
};

class file_device final : private file_on_disk, public counted_device<blocks::file> {
 public:
  file_device(const std::string& path, const store_device_options& options)
      : file_on_disk(path, options),
        counted_device(this->path(), blocks::file_options{.block_bytes = block_bytes, .least_bytes = options.bytes}) {}
  [[nodiscard]] std::string way() const override { return counter().inner().way(); }
  [[nodiscard]] std::vector<std::string> remarks() const override {
    std::vector<std::string> all;
    if (!counter().inner().uses_io_uring()) all.push_back("io_uring is not used: " + way());
    if (counter().inner().facts().file_system == "tmpfs") all.emplace_back("a file on tmpfs is memory, not a drive");
    return all;
  }
};

}  // namespace

std::unique_ptr<store_device> open_store_device(const drive::device_spec& spec, const store_device_options& options) {
  detail::check_bytes(options);
  switch (spec.which) {
    case drive::device_spec::kind::memory: return std::make_unique<memory_device>(options.bytes);
    case drive::device_spec::kind::file: return std::make_unique<file_device>(spec.path, options);
    case drive::device_spec::kind::emulated:
      return std::make_unique<emulated_device>(options, blocks::load_drive(spec.profile));
    case drive::device_spec::kind::simulated:
      throw error("a simulated drive is of the program that has the machine",
                  "use `pmlab stores volumes` or `pmlab stores pairs`");
  }
  return nullptr;
}

}  // namespace pmlab::store_bench
