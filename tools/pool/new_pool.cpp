// A pool made from entries.
#include "tools/pool/new_pool.hpp"
#include "tools/pool/inspect.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/pool_header.hpp>
#include <pmlab/media/pool_name.hpp>
#include "bench/support/quantity.hpp"
#include "bench/support/removed_on_interrupt.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::pool {
namespace {

namespace fs = std::filesystem;

// The names of unfinished pools: NAME.filling-PROCESS-DIGITS.
constexpr std::string_view suffix = ".filling-";
constexpr std::size_t random_digits = 8;

std::string name_of_unfinished(const std::string& name) {
  return fmt::format("{}{}{}-{:0{}x}", name, suffix, ::getpid(), std::random_device()(), random_digits);
}

// The process in the rest of such a name, behind the suffix; std::nullopt: it is another one.
std::optional<pid_t> process_in(std::string_view rest) {
  const std::string own_suffix = media::unfinished_name({});
  if (rest.ends_with(own_suffix)) rest.remove_suffix(own_suffix.size());
  pid_t process = 0;
  const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), process);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const bool fits = failed == std::errc() && process > 0 && rest.size() == 1 + random_digits && rest.front() == '-' &&
                    std::all_of(rest.begin() + 1, rest.end(), is_digit);
  return fits ? std::optional(process) : std::nullopt;
}

// A later call for another pool would remove it.
void refuse_name_of_unfinished(const std::string& path) {
  const std::size_t at = path.rfind(suffix);
  if (at != std::string::npos && process_in(std::string_view(path).substr(at + suffix.size())))
    throw error(path + " is a name of pools that are not finished, which are removed", "name another path");
}

// True for a pool of pmlab, and for one of which nothing is written yet.
bool is_pool_or_begun(int file) {
  struct stat status {};
  std::uint64_t first = 0;
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return media::layout_of_pool(file) == media::pmem::pool_layout ||
         (::pread(file, &first, sizeof first, 0) >= 0 && first == 0);
}

// A pool that is not finished, removed with all that belongs to it unless it gets its name. Its name until then has the
// number of this process and random digits: another process that makes the same pool, in another container too, has a
// file of its own.
class unfinished_pool {
 public:
  explicit unfinished_pool(std::string path) : name_(std::move(path)), path_(name_of_unfinished(name_)) {
    remove_those_of_killed();
  }
  unfinished_pool(const unfinished_pool&) = delete;
  unfinished_pool& operator=(const unfinished_pool&) = delete;
  ~unfinished_pool() { remove(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Throws pmlab::error: another process was faster.
  void finish() const {
    {
      const descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      sync_file(file.get(), path_);
    }
    // No other process finds that there is no such pool, and makes one, meanwhile.
    const media::folder_lock lock(name_);
    while (!rename_durably_to_new(path_, name_)) refuse_what_is_there(name_);
  }

 private:
  // The kernel unlocks the pools of a killed process. A process of another container may have a number that is free
  // here.
  void remove_those_of_killed() const {
    const fs::path folder = folder_of(name_);
    const std::string begin = fs::path(name_).filename().string() + std::string(suffix);
    std::error_code failure;
    for (const auto& file : fs::directory_iterator(folder, failure)) {
      const std::string found = file.path().filename().string();
      if (!found.starts_with(begin)) continue;
      const std::optional<pid_t> process = process_in(std::string_view(found).substr(begin.size()));
      if (!process || ::kill(*process, 0) == 0 || errno != ESRCH) continue;
      const descriptor left(::open(file.path().c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
      if (left.is_open() && is_pool_or_begun(left.get()) && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0)
        std::remove(file.path().c_str());
    }
  }

  void remove() const {
    std::error_code ignored;
    fs::remove(path_, ignored);
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
    throw error("cannot reach " + path + ": " + failure.message(),
                remedy_for(failure.value(), "check the path and its permissions"));
  if (fs::exists(status))
    throw error(path + " exists already", "nothing was overwritten: name another path, or remove it yourself");
}

void make_pool(const std::string& path, std::uint64_t bytes, const std::vector<new_root>& roots) {
  refuse_name_of_unfinished(path);
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
