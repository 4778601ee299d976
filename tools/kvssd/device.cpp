#include "tools/kvssd/device.hpp"
#include "tools/kvssd/files.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_limit.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/file.hpp>
#include "bench/devices/drive_file.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::kvssd {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr unsigned threads_of_requests = 4;

// The index takes at most 32 bytes for each unit of flash, twice that while it grows; then the buffer, and room for
// libpmemobj.
std::uint64_t memory_bytes(const device_uri& uri, std::uint64_t flash_bytes) {
  if (uri.memory != 0) return uri.memory;
  return 64 * mib + std::max(uri.buffer, 16 * mib) + flash_bytes / 16;
}

stores::kv_options options_of(const device_uri& uri) {
  stores::kv_options options;
  options.short_keys = uri.nvme_keys;
  if (uri.buffer != 0) options.buffer_bytes = uri.buffer;
  return options;
}

// The problem of an error, without its remedy, which names the classes of the library.
std::string problem_of(const std::exception& e) {
  const std::string text = e.what();
  return text.substr(0, text.find("; "));
}

// Runs a step of a making. Its errors speak of the options of the URI.
template <class Step>
void step_of_making(const device_files& at, const std::string& remedy, Step&& step) try {
  step();
} catch (const error& e) {
  throw error("cannot make the device " + at.drive + ": " + problem_of(e), remedy);
}

void check_sizes(const device_uri& uri) {
  // Two superblocks for records and five in reserve, behind the header.
  const std::uint64_t least = 7 * stores::kv_options{}.superblock_bytes + 4096;
  if (uri.bytes < least || uri.bytes % 4096 != 0)
    throw error("a device with size=" + std::to_string(uri.bytes) + " cannot be made",
                "give size= a multiple of 4096 bytes, at least " + std::to_string(least / mib + 1) + "M");
}

// An opening changes the drive and the memory.
void check_that_files_can_be_written(const device_files& at) {
  for (const std::string& file : {at.drive, at.memory})
    if (::access(file.c_str(), W_OK) != 0 && errno == EROFS)
      throw error(file + " is on a read-only file system, and opening a device writes to its drive and to its memory",
                  "mount it for writing, or copy both files to another one");
  struct stat drive {};
  if (::stat(at.drive.c_str(), &drive) == 0 && S_ISREG(drive.st_mode))
    check_file_limit(at.drive, static_cast<std::uint64_t>(drive.st_size), "");
}

// The memory is whole, and the drive is not that of another moment. Throws pmlab::error: the file cannot be opened.
bool may_go_on_with(const std::string& file, blocks::any_device& flash) {
  media::pmem memory(file);
  return engine::is_complete(memory) && !engine::are_of_different_moments(memory, flash);
}

// Releases before made both files under their names: a making that failed left them, with nothing in them.
bool was_never_made(const device_files& at) {
  return !at.drive_is_block_device() && !at.drive_has_header() && at.drive_is_blank() && !at.has_whole_memory();
}

// Makes the device: its files have their names when both are complete. A failure leaves no file; a crash leaves files
// that the next making removes, or completes.
void make(const device_uri& uri, const device_files& at) {
  check_sizes(uri);
  const std::uint64_t bytes = memory_bytes(uri, uri.bytes);
  const bool in_place = at.drive_is_block_device();
  if (!in_place) check_file_limit(at.drive, uri.bytes, ", or choose a smaller size=");
  check_file_limit(at.memory, bytes, ", or choose a smaller memory=");
  const making one_at_a_time(at);
  if (at.has_drive() && at.has_memory()) {
    if (!was_never_made(at)) return;  // another process has made it, since it was looked for
    at.remove_memory();
  }
  const std::string drive = in_place ? at.drive : at.new_drive;
  if (!in_place)
    step_of_making(at, "choose a smaller size=, or a file system with more space",
                   [&] { blocks::create_file(drive, uri.bytes); });
  const std::string remedy = "check memory= (" + std::to_string(bytes / mib) + "M here) and buffer= (" +
                             std::to_string(options_of(uri).buffer_bytes / mib) +
                             "M here, at least 5M), and the free space of the folder";
  step_of_making(at, remedy, [&] {
    media::pmem memory(at.new_memory, {.create_bytes = bytes});
    blocks::any_device flash(std::in_place_type<blocks::file>, drive, blocks::file_options{});
    stores::kv_options options = options_of(uri);
    options.format = in_place;  // what an interrupted making wrote there
    const engine made = engine::open(memory, flash, options);
  });
  at.name_new_ones(!in_place);
}

// Makes the memory again, in another file, which replaces what there is when it is complete.
void rebuild(const device_uri& uri, const device_files& at) {
  if (!at.has_drive()) throw error("there is no device " + at.drive, "name the backing file of a device");
  if (!at.drive_has_header())
    throw error(at.drive + " is no device: it has no header", "name another file, or restore this one from a copy");
  const making one_at_a_time(at);
  std::optional<blocks::any_device> flash(std::in_place, std::in_place_type<blocks::file>, at.drive,
                                          blocks::file_options{});
  std::vector<std::string> memories = at.other_memories;
  if (at.has_memory()) memories.insert(memories.begin(), at.memory);
  for (const std::string& memory : memories)
    if (may_go_on_with(memory, *flash))
      throw error(
          memory + " is there: the device has its memory",
          "open it without rebuild=yes; that is for a device whose memory file is lost. If this memory is not the "
          "device's, move it elsewhere first");
  at.check_that_memory_is_a_file();
  const std::uint64_t bytes = memory_bytes(uri, flash->shape().bytes());
  check_file_limit(at.memory, bytes, ", or choose a smaller memory=");
  try {
    media::pmem memory(at.rebuilt, {.create_bytes = bytes});
    stores::kv_rebuilt ignored;
    const engine made = engine::rebuild(memory, *flash, options_of(uri), ignored);
  } catch (const std::exception& e) {
    flash.reset();
    // Behind its end only keys are listed again, for iterators. The flash goes on with this memory.
    if (!at.surely_fits(at.rebuilt)) {
      if (dynamic_cast<const error*>(&e) == nullptr) throw;
      throw error("cannot rebuild the device " + at.drive + ": " + problem_of(e),
                  "check memory= (" + std::to_string(bytes / mib) +
                      "M here) and the free space of the folder; the backing file has lost no pair by this");
    }
  }
  rename_durably(at.rebuilt, at.memory);
}

// Makes the device if the URI asks for that; returns the file of its memory.
std::string prepared(const device_uri& uri, const device_files& at) {
  const bool was_rebuilt = at.finish();
  check_that_files_can_be_written(at);
  if (uri.rebuilds) {
    if (!was_rebuilt) rebuild(uri, at);
    return at.memory;
  }
  const bool has_drive = at.has_drive();
  const bool has_memory = at.has_memory();
  if (!has_drive && has_memory)
    throw error(at.memory + " is the memory of a device whose file " + at.drive + " is gone",
                "restore the file, or remove the memory");
  if (!has_drive && uri.bytes == 0)
    throw error("there is no device " + at.drive, "name an existing one, or make it: " + at.drive + "?size=1G");
  if (has_drive && !at.drive_is_file_or_block_device())
    throw error(at.drive + " is neither a file nor a block device", "name another one");
  if (!has_drive) {
    make(uri, at);
  } else if (has_memory) {
    if (uri.bytes != 0 && was_never_made(at)) make(uri, at);
  } else if (at.drive_has_header() && !at.drive_was_made_only()) {
    throw error(
        at.drive + " has no memory file " + at.memory,
        "restore both files of the device from a copy; or open it once with rebuild=yes: what had not reached the "
        "backing file is lost, and deleted keys may be there again");
  } else if (!at.drive_is_block_device() && !at.drive_has_header() && !at.drive_is_blank()) {
    throw error(at.drive + " is there, and is no device: it has no header, and no memory file " + at.memory,
                "name another file; or remove this one, and make a device with size=");
  } else if (uri.bytes == 0) {
    throw error(at.drive + " is empty, and no device: its making was interrupted", "make it: " + at.drive + "?size=1G");
  } else {
    make(uri, at);
  }
  return at.memory;
}

blocks::any_device flash_of(const device_uri& uri, const device_files& at) {
  const blocks::file_options options{};
  if (uri.profile.empty()) return blocks::any_device(std::in_place_type<blocks::file>, at.drive, options);
  return blocks::any_device(std::in_place_type<blocks::emulated<blocks::file>>, blocks::load_drive(uri.profile),
                            at.drive, options);
}

engine opened(const device_uri& uri, const device_files& at, media::pmem& memory, blocks::any_device& flash) {
  const bool was_complete = engine::is_complete(memory);
  try {
    return engine::open(memory, flash, options_of(uri));
  } catch (const error& e) {
    if (was_complete && !engine::are_of_different_moments(memory, flash)) throw;
    if (was_complete)
      throw error(
          problem_of(e),
          "restore both files of the device from one copy; or open it once with rebuild=yes: what had not reached "
          "the backing file is lost, and deleted keys may be there again");
    throw error(memory.path() + " is not the whole memory of a device (" + problem_of(e) + ")",
                at.drive_has_header() ? "open " + at.drive + " once with rebuild=yes"
                                      : "remove it and " + at.drive + ", and make the device with size=");
  }
}

}  // namespace

device::device(const device_uri& uri) : device(uri, device_files::named_by(uri.path)) {}

device::device(const device_uri& uri, const device_files& at)
    : memory_(prepared(uri, at), {.keep_from_children = true}),
      flash_(flash_of(uri, at)),
      engine_(opened(uri, at, memory_, flash_)),
      spaces_(engine_),
      iterators_(engine_),
      workers_(threads_of_requests) {}

}  // namespace pmlab::kvssd
