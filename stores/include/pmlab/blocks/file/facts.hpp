// The facts of the drive below a file or a block device, as the kernel states them.
//
// Sources: statx (direct I/O, atomic writes), and the folder `queue` of the drive in sysfs. A file system on several
// drives, or on none, has no such folder: those facts are unknown then.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pmlab::blocks {

// Facts of a drive. std::nullopt, or 0: the kernel does not report it.
struct drive_facts {
  bool block_device = false;           // itself, rather than a file on one
  std::uint64_t bytes = 0;             // bytes of the file or device
  std::string file_system;             // file system of a file: "ext4", "tmpfs", or its number
  std::string drive;                   // "vda"; empty: none known
  std::uint32_t logical_block = 512;   // bytes; offsets and lengths of direct I/O are multiples of it
  std::uint32_t physical_block = 0;    // bytes; the drive reads and writes back a smaller piece
  std::uint32_t atomic_unit = 0;       // bytes; aligned writes of up to so many are whole after a power failure
  std::optional<bool> volatile_cache;  // completed writes need a flush
  std::optional<bool> fua;             // one write can pass the volatile cache
};

namespace detail {

// The fields of the kernel's struct statx that older headers lack, at their places in it.
struct statx_of_file {
  std::array<std::byte, 256> content{};

  [[nodiscard]] std::uint32_t word(std::size_t place) const noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, content.data() + place, sizeof value);
    return value;
  }
  [[nodiscard]] bool has(std::uint32_t mask) const noexcept { return (word(0) & mask) != 0; }
  [[nodiscard]] std::uint32_t direct_offset_align() const noexcept { return word(156); }
  [[nodiscard]] std::uint32_t atomic_unit_max() const noexcept { return word(172); }
};

inline constexpr std::uint32_t statx_direct = 0x2000;   // STATX_DIOALIGN, Linux 6.1
inline constexpr std::uint32_t statx_atomic = 0x10000;  // STATX_WRITE_ATOMIC, Linux 6.11

[[nodiscard]] inline statx_of_file statx_of(int file) noexcept {
  statx_of_file found;
  constexpr unsigned wanted = statx_direct | statx_atomic;
  if (::syscall(SYS_statx, file, "", AT_EMPTY_PATH, wanted, found.content.data()) != 0) found.content.fill({});
  return found;
}

[[nodiscard]] inline std::string name_of_file_system(int file) {
  struct statfs s {};
  if (::fstatfs(file, &s) != 0) return "unknown";
  switch (static_cast<unsigned long>(s.f_type)) {
    case 0xEF53: return "ext4";  // and its ancestors
    case 0x01021994: return "tmpfs";
    case 0x58465342: return "xfs";
    case 0x9123683E: return "btrfs";
    case 0xF2F52010: return "f2fs";
    case 0x794C7630: return "overlayfs";
    case 0x6969: return "nfs";
    case 0x65735546: return "fuse";
    case 0x2FC12FC1: return "zfs";
    default: break;
  }
  std::array<char, 20> number{};
  std::snprintf(number.data(), number.size(), "0x%lx", static_cast<unsigned long>(s.f_type));
  return number.data();
}

// The folder of a drive in sysfs that has `queue`: of a partition it is the one above.
[[nodiscard]] inline std::string sysfs_of(dev_t drive) {
  const std::string own = "/sys/dev/block/" + std::to_string(major(drive)) + ":" + std::to_string(minor(drive));
  for (const std::string& folder : {own, own + "/.."})
    if (::access((folder + "/queue").c_str(), R_OK) == 0) return folder;
  return {};
}

[[nodiscard]] inline std::string line_of(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  return text;
}

[[nodiscard]] inline std::uint32_t number_in(const std::string& path) {
  const std::string text = line_of(path);
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The drive's name: the last part of the path that its link in sysfs leads to.
[[nodiscard]] inline std::string drive_name(dev_t drive) {
  const std::string link = "/sys/dev/block/" + std::to_string(major(drive)) + ":" + std::to_string(minor(drive));
  std::array<char, 1024> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size() - 1);
  if (length <= 0) return {};
  const std::string path(target.data(), static_cast<std::size_t>(length));
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace detail

// The facts of an open file or block device. `path` names it in the error. Throws pmlab::error: neither of the two.
[[nodiscard]] inline drive_facts facts_of_drive(int file, const std::string& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0)
    throw error("cannot look at " + path + ": " + std::strerror(errno), remedy_for(errno, "check the path"));
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
    throw error(path + " is neither a file nor a block device", "name a file, or a device like /dev/nvme0n1");

  drive_facts facts;
  facts.block_device = S_ISBLK(status.st_mode);
  const dev_t drive = facts.block_device ? status.st_rdev : status.st_dev;
  facts.drive = detail::drive_name(drive);
  if (const std::string folder = detail::sysfs_of(drive); !folder.empty()) {
    const std::string queue = folder + "/queue/";
    facts.logical_block = std::max(facts.logical_block, detail::number_in(queue + "logical_block_size"));
    facts.physical_block = detail::number_in(queue + "physical_block_size");
    if (const std::string cache = detail::line_of(queue + "write_cache"); !cache.empty())
      facts.volatile_cache = cache != "write through";
    if (const std::string fua = detail::line_of(queue + "fua"); !fua.empty()) facts.fua = fua != "0";
    // Only its file system knows this of a file: an aligned piece of the file may be two pieces of the drive.
    if (facts.block_device) facts.atomic_unit = detail::number_in(queue + "atomic_write_unit_max_bytes");
  }
  const detail::statx_of_file more = detail::statx_of(file);
  if (more.has(detail::statx_direct) && more.direct_offset_align() != 0)
    facts.logical_block = std::max(std::uint32_t{512}, more.direct_offset_align());
  if (more.has(detail::statx_atomic)) facts.atomic_unit = more.atomic_unit_max();

  if (facts.block_device) {
    int logical = 0;
    if (::ioctl(file, BLKSSZGET, &logical) == 0 && logical > 0)
      facts.logical_block = static_cast<std::uint32_t>(logical);
    if (::ioctl(file, BLKGETSIZE64, &facts.bytes) != 0)
      throw error("cannot read the size of " + path + ": " + std::strerror(errno), "check that its drive is there");
  } else {
    facts.file_system = detail::name_of_file_system(file);
    facts.bytes = static_cast<std::uint64_t>(status.st_size);
  }
  return facts;
}

}  // namespace pmlab::blocks
