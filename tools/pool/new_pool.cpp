// A pool made from entries.
#include "tools/pool/new_pool.hpp"
#include "tools/pool/inspect.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/media/pmem.hpp>
#include "bench/support/quantity.hpp"
#include "bench/support/removed_on_interrupt.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace pmlab::pool {
namespace {

namespace fs = std::filesystem;

// A pool that is not finished, removed with all that belongs to it unless it gets its name.
class unfinished_pool {
 public:
  // Throws pmlab::error if another process is at work on the same pool.
  explicit unfinished_pool(std::string path) : name_(std::move(path)), path_(name_ + ".filling") {
    refuse_what_is_locked(path_);
    refuse_what_is_locked(media::unfinished_name(path_));
    remove();
  }
  unfinished_pool(const unfinished_pool&) = delete;
  unfinished_pool& operator=(const unfinished_pool&) = delete;
  ~unfinished_pool() { remove(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void finish() const {
    refuse_what_is_there(name_);
    {
      const descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      sync_file(file.get(), path_);
    }
    rename_durably(path_, name_);
  }

 private:
  // libpmemobj locks the pools that a process has open, and the kernel unlocks those of a killed one.
  void refuse_what_is_locked(const std::string& unfinished) const {
    const descriptor file(::open(unfinished.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw error(fmt::format("another process is making {}: it has {} open", name_, unfinished),
                  "wait until it is done, or name another path");
  }

  void remove() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
    // A process that was killed may have left one: media::pmem would adopt it, with entries.
    fs::remove(media::unfinished_name(path_), ignored);
  }

  std::string name_, path_;
  removed_on_interrupt doomed_{path_};
  removed_on_interrupt doomed_unfinished_{media::unfinished_name(path_)};
};

std::shared_ptr<erased::any_index> open(media::pmem& pool, const new_root& r) {
  if (!r.index->open_root || r.index->kept == bench::keeps::nothing)
    throw error(fmt::format("{} has no root in a pool", r.index->name),
                "name an index of pmlab that keeps its entries");
  return r.index->open_root(pool, r.name);
}

string_root strings_over(erased::any_index& words, const new_root& r) {
  return {words, {r.index->string_form, std::string(r.values)}, r.name};
}

void fill(media::pmem& pool, const new_root& r) {
  if (r.texts != nullptr) return fill_strings(strings_over(*open(pool, r), r), *r.texts);
  const std::size_t loaded = open(pool, r)->load(r.entries);
  if (loaded != r.entries.size())
    throw error(fmt::format("the pool is full after {} of the {} entries of root '{}'", loaded, r.entries.size(),
                            printable(r.name)),
                "give a larger --size");
}

void check(media::pmem& pool, const new_root& r) {
  const std::shared_ptr<erased::any_index> index = open(pool, r);
  constexpr bool checks = true;
  const auto [found, shape] =
      r.texts == nullptr ? report_on_index(*index, checks) : report_on_strings(strings_over(*index, r), checks);
  if (found.ok() && shape.entries == r.count()) return;
  throw error(fmt::format("root '{}' of the new pool is wrong: {}", printable(r.name),
                          found.ok() ? fmt::format("it has {} entries, not {}", shape.entries, r.count())
                                     : found.violations.front()),
              "this is a defect of pmlab: please report it");
}

}  // namespace

std::uint64_t bytes_for(const std::vector<new_root>& roots) {
  std::uint64_t bytes = std::uint64_t{64} << 20;
  // A record, a value and a layer of the trie, each rounded up.
  constexpr std::uint64_t of_a_string = 512;
  for (const new_root& r : roots) {
    bytes += r.index->pool_bytes_per_entry * r.count();
    if (r.texts == nullptr) continue;
    for (const auto& [key, value] : *r.texts) bytes += of_a_string + 2 * (key.size() + value.size());
  }
  return bytes;
}

void refuse_what_is_there(const std::string& path) {
  std::error_code ignored;
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, ignored))
    throw error(fmt::format("there is no folder {} for {}", folder.string(), path), "make it, or name another path");
  std::error_code failure;
  const fs::file_status status = fs::symlink_status(path, failure);
  if (status.type() == fs::file_type::none)
    throw error("cannot reach " + path + ": " + failure.message(), "check the path and its permissions");
  if (fs::exists(status))
    throw error(path + " exists already", "nothing was overwritten: name another path, or remove it yourself");
}

void make_pool(const std::string& path, std::uint64_t bytes, const std::vector<new_root>& roots) {
  refuse_what_is_there(path);
  const unfinished_pool made(path);
  {
    media::pmem pool(made.path(), {.create_bytes = bytes, .bypass_msync = true});
    for (const new_root& r : roots) {
      fill(pool, r);
      if (r.types) static_cast<void>(pool.named_root(r.types->name, r.types->layout, r.types->version));
    }
  }
  {
    // With the options of every other program.
    media::pmem pool(made.path(), {.bypass_msync = true});
    for (const new_root& r : roots) check(pool, r);
  }
  made.finish();
}

}  // namespace pmlab::pool
