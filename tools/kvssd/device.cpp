#include "tools/kvssd/device.hpp"
#include "tools/devices/drive_file.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/file.hpp>

#include <filesystem>
#include <utility>

namespace pmlab::kvssd {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr unsigned threads_of_requests = 4;

std::string memory_of(const device_uri& uri) { return uri.path + ".memory"; }

// The index takes at most 32 bytes for each unit of flash, twice that while it grows; then the buffer, and room for
// libpmemobj.
std::uint64_t memory_bytes(const device_uri& uri) {
  if (uri.memory != 0) return uri.memory;
  const std::uint64_t bytes = uri.rebuilds ? std::filesystem::file_size(uri.path) : uri.bytes;
  return 64 * mib + std::max(uri.buffer, 16 * mib) + bytes / 16;
}

// The memory of the device: a pool, which is made together with the backing file.
std::string prepared(const device_uri& uri) {
  const bool has_flash = std::filesystem::exists(uri.path);
  const bool has_memory = std::filesystem::exists(memory_of(uri)) || media::pmem::has_lost_its_name(memory_of(uri));
  if (uri.rebuilds && (!has_flash || has_memory))
    throw error(has_flash ? memory_of(uri) + " is there: the device has its memory" : "there is no device " + uri.path,
                "open it without rebuild=yes; that is for a device whose memory file is lost");
  if (has_flash && !has_memory && uri.bytes == 0 && !uri.rebuilds)
    throw error(
        uri.path + " has no memory file " + memory_of(uri),
        "restore both files of the device from a copy; or open it once with rebuild=yes: what had not reached the "
        "backing file is lost, and deleted keys may be there again");
  if (!has_flash && uri.bytes == 0)
    throw error("there is no device " + uri.path, "name an existing one, or make it: " + uri.path + "?size=1G");
  if (!has_flash && has_memory)
    throw error(memory_of(uri) + " is the memory of a device whose file " + uri.path + " is gone",
                "restore the file, or remove the memory");
  if (!has_flash) blocks::create_file(uri.path, uri.bytes);
  return memory_of(uri);
}

blocks::any_device flash_of(const device_uri& uri) {
  const blocks::file_options options{};
  if (uri.profile.empty()) return blocks::any_device(std::in_place_type<blocks::file>, uri.path, options);
  return blocks::any_device(std::in_place_type<blocks::emulated<blocks::file>>, blocks::load_drive(uri.profile),
                            uri.path, options);
}

stores::kv_options options_of(const device_uri& uri) {
  stores::kv_options options;
  options.short_keys = uri.nvme_keys;
  if (uri.buffer != 0) options.buffer_bytes = uri.buffer;
  return options;
}

engine opened(const device_uri& uri, media::pmem& memory, blocks::any_device& flash) {
  stores::kv_rebuilt ignored;
  return uri.rebuilds ? engine::rebuild(memory, flash, options_of(uri), ignored)
                      : engine::open(memory, flash, options_of(uri));
}

}  // namespace

device::device(const device_uri& uri)
    : memory_(prepared(uri), {.create_bytes = uri.bytes == 0 && !uri.rebuilds ? 0 : memory_bytes(uri)}),
      flash_(flash_of(uri)),
      engine_(opened(uri, memory_, flash_)),
      spaces_(engine_),
      iterators_(engine_),
      workers_(threads_of_requests) {}

}  // namespace pmlab::kvssd
