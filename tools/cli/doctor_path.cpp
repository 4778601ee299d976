// `pmlab doctor PATH`: which media a path can hold, tried out and not only read off.
#include "tools/cli/doctor.hpp"
#include "tools/pool/inspect.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/pmem_path.hpp>
#include <pmlab/media/pool_header.hpp>
#include "bench/support/process_pages.hpp"
#include "bench/support/quantity.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <libpmem.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

// libpmemobj makes no smaller pool.
constexpr std::uint64_t least_pool = std::uint64_t{8} << 20;

// For the trial of a drive.
constexpr std::uint64_t least_for_trial = std::uint64_t{64} << 20;

void line(std::string_view subject, std::string_view finding) { fmt::print("{:<12} {}\n", subject, finding); }

struct place {
  fs::path path;
  fs::path folder;  // where a file of that name would lie
  fs::file_status status;
  bool writable = false;  // a file can be made in the folder, or the device be written
  std::uint64_t free_bytes = 0;
  std::uint64_t all_bytes = 0;

  [[nodiscard]] bool is_device() const { return fs::is_character_file(status); }
  [[nodiscard]] bool is_block_device() const { return fs::is_block_file(status); }
  [[nodiscard]] bool is_file() const { return fs::is_regular_file(status); }
};

place place_of(const std::string& text) {
  place p;
  p.path = text;
  std::error_code failure;
  p.status = fs::status(p.path, failure);
  if (p.status.type() == fs::file_type::none)
    throw error(fmt::format("cannot look at {}: {}", text, failure.message()), "check the permissions of its folders");
  p.folder = fs::is_directory(p.status) ? p.path : p.path.has_parent_path() ? p.path.parent_path() : fs::path(".");
  if (!fs::exists(p.status) && !fs::is_directory(p.folder, failure))
    throw error(fmt::format("there is no {}, and no folder {} for it", text, p.folder.string()),
                "make the folder, or name another path");
  p.writable = ::access(p.is_device() ? p.path.c_str() : p.folder.c_str(), W_OK) == 0;
  struct statfs space {};
  if (::statfs(p.folder.c_str(), &space) == 0) {
    p.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * static_cast<std::uint64_t>(space.f_bsize);
    p.all_bytes = static_cast<std::uint64_t>(space.f_blocks) * static_cast<std::uint64_t>(space.f_bsize);
  }
  return p;
}

std::string kind_of(const place& p) {
  if (p.is_device()) return fmt::format("device of {}", bench::readable_bytes(media::capacity_of(p.path)));
  if (p.is_file()) return fmt::format("file of {}", bench::readable_bytes(media::capacity_of(p.path)));
  if (p.is_block_device()) return "block device";
  if (fs::is_directory(p.status)) return "folder";
  if (fs::exists(p.status)) return "neither a file nor a folder nor a device of persistent memory";
  return fmt::format("nothing yet, in folder {}", p.folder.string());
}

std::string_view memory_of(media::backing b) {
  switch (b) {
    case media::backing::device_dax: return "persistent memory (device DAX)";
    case media::backing::fs_dax: return "persistent memory (file system with DAX)";
    case media::backing::tmpfs: return "DRAM (tmpfs)";
    case media::backing::page_cache: return "ordinary file system: the page cache, in DRAM";
  }
  return "?";
}

// A file without a name in the folder of the place; -1: none can be made.
int nameless_file(const place& p) {
  const int file = ::open(p.folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  constexpr off_t page = 4096;
  if (file >= 0 && ::ftruncate(file, page) != 0) {
    ::close(file);
    return -1;
  }
  return file;
}

// The storage behind a file there, or one that would be made; nothing: not known.
std::optional<media::backing> backing_of(const place& p) {
  const bool asks_itself = p.is_device() || p.is_file();
  const descriptor file(asks_itself ? ::open(p.path.c_str(), O_RDONLY | O_CLOEXEC) : nameless_file(p));
  if (file.get() >= 0) return media::backing_of(file.get());
  const descriptor folder(::open(p.folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (folder.get() >= 0 && media::backing_of(folder.get()) == media::backing::tmpfs) return media::backing::tmpfs;
  return std::nullopt;
}

// What libpmem says of a mapping there. Nothing is left of it.
std::string is_pmem(const place& p) {
  int found = 0;
  std::size_t bytes = 0;
  constexpr std::size_t try_bytes = std::size_t{2} << 20;
  void* const mapped = p.is_device() ? ::pmem_map_file(p.path.c_str(), 0, 0, 0, &bytes, &found)
                                     : ::pmem_map_file(p.folder.c_str(), try_bytes,
                                                       PMEM_FILE_CREATE | PMEM_FILE_TMPFILE, 0600, &bytes, &found);
  if (mapped == nullptr) return fmt::format("not known: {}", std::strerror(errno));
  ::pmem_unmap(mapped, bytes);
  return found != 0 ? "yes: flushes of cache lines make stores durable" : "no: stores survive the process only";
}

// What the file there holds. False: it is a pool of pmlab that cannot be read.
bool show_pool(const place& p) {
  if (!p.is_file() && !p.is_device()) return true;
  const descriptor file(::open(p.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    line("pool", fmt::format("not known: {}", std::strerror(errno)));
    return true;
  }
  const std::optional<std::string> layout = media::layout_of_pool(file.get());
  if (!layout) {
    line("pool", "none: libpmemobj made nothing here");
  } else if (*layout != media::pmem::pool_layout) {
    line("pool", fmt::format("of another program or version: layout '{}', and this program reads '{}'",
                             printable(*layout), media::pmem::pool_layout));
  } else {
    line("pool", fmt::format("layout {}", *layout));
    try {
      const pool::contents all = pool::contents_of(p.path);
      if (all.roots.empty()) line("", "no index");
      for (const pool::root& r : all.roots)
        line("", fmt::format("{}: {} version {}{}", printable(r.facts.name), printable(r.facts.layout), r.facts.version,
                             r.problem.empty() ? "" : "; " + r.problem));
    } catch (const error& e) {
      line("", e.what());
      return false;
    }
  }
  return true;
}

// Which --medium may name it, or why none.
void show_media(const place& p) {
  const std::string path = fs::is_directory(p.status) ? (p.path / "pmlab.pool").string() : p.path.string();
  std::string reason;
  std::string how;
  if (fs::exists(p.status) && !p.is_file() && !p.is_device() && !fs::is_directory(p.status))
    reason = "a pool is a file or a device";
  else if (!p.writable)
    reason = fmt::format("this user may not write {}", p.is_device() ? path : "to " + p.folder.string());
  else if (p.is_device())
    how = " (one index; a pool made by `pmempool create`, and --reuse)";
  else if (p.is_file())
    how = " (a file is there: with --reuse, or with --overwrite if it is a pool)";
  else if (p.free_bytes < least_pool)
    reason = fmt::format("a pool takes {} at least", bench::readable_bytes(least_pool));
  if (!reason.empty()) return line("media", "none: " + reason);
  line("media", fmt::format("pmem:{}{}", path, how));
  line("", fmt::format("emulated:PROFILE@{}", path));
}

}  // namespace

int examine_path(const std::string& path) {
  const place p = place_of(path);
  line("path", path);
  line("kind", kind_of(p));
  if (p.is_block_device()) {
    examine_block_device(path);
    line("media", "none: a pool is a file or a device of persistent memory; blocks::file takes it");
    return success;
  }
  const std::optional<media::backing> backing = backing_of(p);
  line("memory", backing ? memory_of(*backing) : "not known: this user may make no file there");
  if (backing) line("survives", media::survives(*backing));
  line("is_pmem", is_pmem(p));
  if (p.is_file() && backing == media::backing::tmpfs)
    if (const std::optional<double> huge = bench::pages_of_file(p.path).on_huge_pages())
      line("pages", fmt::format("{:.0f} % of its memory is on 2 MB pages", 100 * *huge));
  if (!p.is_device())
    line("space",
         fmt::format("{} free of {}", bench::readable_bytes(p.free_bytes), bench::readable_bytes(p.all_bytes)));
  if (!p.is_device()) {
    if (p.writable && p.free_bytes > least_for_trial)
      examine_drive_below(p.folder.string());
    else
      line("drive", fmt::format("not examined: {}", p.writable ? "no space" : "this user may make no file there"));
  }
  const bool readable = show_pool(p);
  show_media(p);
  return readable ? success : failure;
}

}  // namespace pmlab::cli
