// The pool files of a run.
#include "bench/catalogue/pool_files.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/pool_name.hpp>
#include "bench/support/quantity.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

namespace fs = std::filesystem;

// Every pool of libpmemobj begins so.
bool looks_like_a_pool(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 7> signature{};
  file.read(signature.data(), signature.size());
  return file && std::memcmp(signature.data(), "PMEMOBJ", signature.size()) == 0;
}

// `freed`: the space that the removal of an old pool will free.
void check_space(const fs::path& folder, std::uint64_t bytes, std::uint64_t freed, const std::string& path) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return;
  const std::uint64_t available = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize + freed;
  if (available >= bytes) return;
  throw error(fmt::format("no space for pool {}: it needs {}, and {} has {}", path, readable_bytes(bytes),
                          folder.string(), readable_bytes(available)),
              "free some, give fewer --records, a smaller --pool-size, or another path");
}

// libpmemobj holds a lock of the file as long as a pool is open.
bool is_open_elsewhere(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return locked;
}

}  // namespace

void refuse_pool_without(std::string_view index, const std::string& path, const std::vector<media::root_facts>& roots) {
  std::string held;
  std::string first;
  for (const media::root_facts& r : roots) {
    if (r.name == index) return;
    held += fmt::format("{}'{}' ({})", held.empty() ? "" : ", ", r.name, r.layout);
    if (first.empty()) first = r.layout;
  }
  if (held.empty()) return;
  throw error(fmt::format("pool {} holds {}, and no {}", path, held, index),
              fmt::format("give --index {} to measure its contents, or --overwrite to replace it", first));
}

std::string pool_path(const std::string& path, const std::string& index, bool alone) {
  if (alone) return path;
  // A specification holds characters that mean something to a shell.
  std::string name = index;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return path + "." + name;
}

pool_file::pool_file(std::string path, std::uint64_t bytes, existing_file policy, bool keep, bool has_reuse)
    : path_(std::move(path)), bytes_(bytes) {
  const char* const other_ways =
      has_reuse ? "give another path, --reuse to measure its contents, or --overwrite to replace it"
                : "give another path, or --overwrite to replace it";
  std::error_code failure;
  const fs::file_status status = fs::status(path_, failure);
  // Nothing is made in place of a name that cannot be reached, nor removed at the end.
  if (status.type() == fs::file_type::none)
    throw error(fmt::format("cannot reach pool {}: {}", path_, failure.message()),
                remedy_for(failure.value(), "check the path and its permissions"));
  if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(path_, failure)))
    throw error(fmt::format("cannot reach pool {}: it is a link that leads nowhere", path_),
                "mount the file system that it leads to, mend the link, or name another path");
  fs::path folder = fs::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  if (fs::is_directory(status))
    throw error(fmt::format("{} is a folder, not a pool", path_),
                fmt::format("name a file in it, for example {}", (fs::path(path_) / "pmlab.pool").string()));
  if (!fs::is_directory(folder))
    throw error(fmt::format("there is no folder {} for pool {}", folder.string(), path_),
                "make it, or name another path");
  // A pool that lost its name in a power failure may hold the only copy of a user's data.
  if (media::pmem::has_lost_its_name(path_)) {
    const std::string left = media::unfinished_name(path_);
    if (policy == existing_file::refuse)
      throw error(fmt::format("pool {} exists as {}: it lost its name in a power failure", path_, left), other_ways);
    if (policy == existing_file::reuse) {
      bytes_ = 0;
      return;
    }
    fs::remove(left, failure);
  }
  if (!fs::exists(status) && policy == existing_file::reuse)
    throw error(fmt::format("there is no pool {} to reuse", path_),
                "name an existing pool, or leave --reuse out to make one");
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status) && !fs::is_character_file(status))
      throw error(fmt::format("{} is neither a file nor a device", path_), "name another path");
    if (fs::is_character_file(status) && policy != existing_file::reuse)
      throw error(fmt::format("{} is a device, and pmlab overwrites none", path_),
                  has_reuse ? "make a pool on it with `pmempool create`, then give --reuse" : "name a file");
    if (policy == existing_file::refuse) throw error(fmt::format("{} exists already", path_), other_ways);
    if (policy == existing_file::reuse) {
      bytes_ = 0;
      return;
    }
    if (!looks_like_a_pool(path_))
      throw error(fmt::format("{} exists already and is not a pool", path_),
                  "nothing was overwritten: remove it yourself, or give another path");
    if (is_open_elsewhere(path_))
      throw error(fmt::format("pool {} is in use by another program", path_),
                  "nothing was overwritten: end that program first, or give another path");
  }
  if (::access(folder.c_str(), W_OK) != 0)
    throw error(fmt::format("cannot write to {}: {}", folder.string(), std::strerror(errno)),
                remedy_for(errno, "check its permissions, or name another path"));
  // All checks are made before the old pool is removed.
  check_space(folder, bytes_, fs::exists(status) ? fs::file_size(path_, failure) : 0, path_);
  if (fs::exists(status) && !fs::remove(path_, failure))
    throw error(fmt::format("cannot remove {}: {}", path_, failure.message()),
                remedy_for(failure.value(), "check its permissions"));
  remove_ = !keep;
  if (!remove_) return;
  doomed_.emplace(path_);
  doomed_unfinished_.emplace(path_ + ".unfinished");
}

pool_file::~pool_file() {
  if (!remove_) return;
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace pmlab::bench
