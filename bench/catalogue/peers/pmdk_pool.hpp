// The pool of a container of libpmemobj-cpp.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/catalogue/subject.hpp"

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include <libpmemobj++/make_persistent.hpp>
#include <libpmemobj++/persistent_ptr.hpp>
#include <libpmemobj++/pool.hpp>
#include <libpmemobj++/transaction.hpp>
#include <libpmemobj.h>
#include <sys/vfs.h>

namespace pmlab::bench::peers {

// Opens the pool that a setup names, or makes it, with one `Container` in it. Not thread-safe; the container's own
// operations are as thread-safe as the container.
template <class Container>
class pmdk_pool {
 public:
  // `layout`: the layout name of the pool. Throws pmlab::error.
  pmdk_pool(const subject_setup& setup, const std::string& layout) {
    if (!setup.medium.in_pool() || setup.medium.emulated() || setup.medium.counted)
      throw error(layout + " cannot live on medium " + setup.medium.text(),
                  "it is a container of libpmemobj-cpp: use --medium pmem:PATH");
    const std::string& path = setup.medium.path;
    trust_tmpfs(path);
    try {
      pool_ = setup.pool_bytes == 0 ? pool_type::open(path, layout)
                                    : pool_type::create(path, layout, setup.pool_bytes, 0600);
    } catch (const std::exception& e) {
      throw error("cannot open pool " + path + " for " + layout + ": " + e.what(),
                  "check that it was made for " + layout + ", is not open in another process, and that there is space");
    }
    enum pobj_stats_enabled statistics = POBJ_STATS_ENABLED_BOTH;
    pmemobj_ctl_set(pool_.handle(), "stats.enabled", &statistics);
    auto root = pool_.root();
    if (root->container == nullptr)
      ::pmem::obj::transaction::run(pool_, [&] { root->container = ::pmem::obj::make_persistent<Container>(); });
    container_ = root->container.get();
  }

  pmdk_pool(const pmdk_pool&) = delete;
  pmdk_pool& operator=(const pmdk_pool&) = delete;
  ~pmdk_pool() { pool_.close(); }

  [[nodiscard]] Container& container() noexcept { return *container_; }
  [[nodiscard]] ::pmem::obj::pool_base& handle() noexcept { return pool_; }

  // Bytes that live blocks of the pool hold, by its own statistics.
  [[nodiscard]] std::uint64_t allocated_bytes() {
    std::uint64_t bytes = 0;
    pmemobj_ctl_get(pool_.handle(), "stats.heap.curr_allocated", &bytes);
    return bytes;
  }

 private:
  struct root_object {
    ::pmem::obj::persistent_ptr<Container> container;
  };
  using pool_type = ::pmem::obj::pool<root_object>;

  // On tmpfs libpmem would call msync at every persist, since it treats it as a disk: that would make the peer look
  // slower than it is. libpmem reads the variable when the first pool of the process is opened.
  static void trust_tmpfs(const std::string& path) {
    constexpr std::int64_t tmpfs_magic = 0x01021994;
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct statfs fs {};
    if (::statfs(folder.c_str(), &fs) == 0 && fs.f_type == tmpfs_magic) ::setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  }

  pool_type pool_;
  Container* container_ = nullptr;
};

// Runs a changing call; a pool that is full answers like an index that is.
template <class Call>
indexes::outcome unless_full(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return indexes::outcome::full;
  }
}

}  // namespace pmlab::bench::peers
