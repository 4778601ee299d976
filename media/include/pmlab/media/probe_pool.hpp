// Opens a pool that may be damaged in a child process, before this process opens it.
//
// libpmemobj follows its own words in a pool without checking them: with a damaged file pmemobj_open may crash, abort
// or never return. An index checks the words that it follows when it is opened, but no check detects every damage. So a
// program that must survive a damaged file opens it in a child process first. A pool that was closed in order, and
// whose words of libpmemobj are still those of then, needs no child (pmem::is_as_closed):
//
//   if (!media::pmem::is_as_closed(path))
//     media::probe_pool(path, media::time_to_probe(path),
//                       [](media::pmem& pool) { indexes::cceh<media::pmem>::open(pool); });
//   media::pmem pool(path);
#pragma once

#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/media/pmem.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include <libpmemobj.h>
#include <sys/stat.h>

namespace pmlab::media {

// Pools that this process opens from now on are mapped privately: its changes stay in its own memory. A pool that this
// user can only read is copied into memory (copy_in_memory.hpp). Does not work for devices, which cannot be mapped
// privately. For a child process that inspects a pool. Throws pmlab::error.
inline void map_pools_privately(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode)) return;
  int yes = 1;
  if (pmemobj_ctl_set(nullptr, "copy_on_write.at_open", &yes) != 0)
    throw error("libpmemobj cannot open pools without changing them", "use libpmemobj 1.7 or a later one");
}

// Upper bound of the time to open a sound pool at `path`, and indexes in it, on a slow and busy machine.
[[nodiscard]] inline std::chrono::milliseconds time_to_probe(const std::string& path) {
  constexpr std::chrono::seconds least(20);
  constexpr std::uint64_t bytes_per_second = std::uint64_t{64} << 20;
  return least + std::chrono::seconds(capacity_of(path) / bytes_per_second);
}

// Runs open() in a child process, for at most `limit`, with pools mapped privately: the file at `path` stays as it is,
// unless it is a device, whose recovery is written. Call it while this process has one thread (in_child_process).
// Throws pmlab::error: the child faulted, or did not end in time: then the pool is damaged; and an error that open()
// threw, in its words.
inline void probe_opening(const std::string& path, std::chrono::milliseconds limit, const std::function<void()>& open) {
  const child_end ended = in_child_process(limit, [&] {
    map_pools_privately(path);
    open();
    return std::string();
  });
  std::string what;
  switch (ended.end) {
    case child_end::how::returned: return;
    case child_end::how::threw: throw error(ended.text, {});
    case child_end::how::late: what = "did not end in " + std::to_string(limit.count() / 1000) + " s"; break;
    case child_end::how::signalled: what = std::string("was killed by '") + ::strsignal(ended.signal) + "'"; break;
    case child_end::how::vanished: what = "exited"; break;
  }
  throw error("pool " + path + " is damaged: a child process that opened it " + what,
              "run `pmlab pool check` for details, or `pmlab pool repair` to copy the readable entries");
}

// Opens the pool at `path` in a child process, calls look(pool) there, which must open the indexes that this program
// will open, and closes it again. As probe_opening.
inline void probe_pool(const std::string& path, std::chrono::milliseconds limit,
                       const std::function<void(pmem&)>& look = {}) {
  probe_opening(path, limit, [&] {
    pmem pool(path, {.huge_pages = false, .reserve_space = false, .bypass_msync = true});
    if (look) look(pool);
  });
}

}  // namespace pmlab::media
