// Persistent memory as a medium: a libpmemobj pool on fsdax, devdax or tmpfs.
//
// Stores that were flushed and fenced survive power failure on fsdax and devdax; on tmpfs and on ordinary files they
// survive the death of the process only (see `survives()`). libpmemobj allocates; its publications are redo-logged, so
// that blocks and the words that point to them become durable atomically.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/media/background_collapse.hpp>
#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/copy_in_memory.hpp>
#include <pmlab/media/forks.hpp>
#include <pmlab/media/huge_pages.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include <pmlab/media/pmem_path.hpp>
#include <pmlab/media/pool_header.hpp>
#include <pmlab/media/pool_name.hpp>
#include <pmlab/media/pool_runs.hpp>
#include <pmlab/media/pool_seal.hpp>
#include <pmlab/media/root_table.hpp>
#include <pmlab/media/write_back.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <libpmem.h>
#include <libpmemobj.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::media {

// Options for opening or creating a pool.
struct pmem_options {
  std::uint64_t create_bytes = 0;  // size of the pool if it must be made; 0: it must exist
  bool huge_pages = true;          // tmpfs: 2 MB pages if the kernel gives them; of a pool that exists, by a thread
  // A pool file with holes (copied sparsely, extended by truncate) gets space for them when it is opened: a store into
  // a hole of a full file system would end the process with SIGBUS. False: the file is not touched.
  bool reserve_space = true;
  // True: a child process that is forked does not have the pool: a use there ends the child. libpmemobj's lock belongs
  // to the mapping, so a child that has it keeps the pool locked after this process has closed it.
  bool keep_from_children = false;
  // tmpfs and ordinary files: libpmemobj makes its own words durable by flush instructions, and not by msync, which is
  // slower and adds no durability: the content of such a pool survives the death of the process only. libpmem makes
  // this choice per process, not per pool, at the first pool that PMDK opens. Use it only if all PMDK pools of the
  // process are pmlab's: a pool of another library on an ordinary file would lose its msync, and with it its guarantee
  // for a power failure. The environment is changed for a moment (PMEM_IS_PMEM_FORCE; a value set by the user is kept):
  // no other thread may use it during the call. fsdax and devdax need no msync and ignore this.
  bool bypass_msync = false;
  // What the platform saves when the power fails. std::nullopt: as libpmem flushes, `adr` or, where it finds that the
  // caches are saved (pmem_has_auto_flush) and PMEM_NO_FLUSH=0 does not make it flush all the same, `eadr`.
  // Given, it is not checked. `eadr` and `gpf` where libpmem does not find that: flushes are left out until the pool is
  // closed, which then writes all its lines back. A power failure before that damages a pool on persistent memory, and
  // so does one between a kill and the next opening, which writes them back, too.
  // Does not concern libpmemobj's own words, about which libpmem decides: `adr` and `gpf_may_fail` where libpmem leaves
  // flushes out are safe only with PMEM_NO_FLUSH=0 in the environment.
  std::optional<persistence_domain> persistence = std::nullopt;
};

// Thread safety: every operation from any number of threads; a pool is open in one process at a time.
class pmem {
 public:
  static constexpr bool durable = true;
  static constexpr optional_parts parts{.pointer_bound = true};
  // Bytes of the smallest pool that libpmemobj makes.
  static constexpr std::uint64_t least_pool_bytes = PMEMOBJ_MIN_POOL;
  // The layout name that libpmemobj knows: the layout of the table of roots. Each index has a layout of its own.
  static constexpr const char* pool_layout = "pmlab-pool-1";

  // Opens the pool at `path`, or creates it with options.create_bytes if the file does not exist. A new pool gets its
  // name only when it is complete and durable (pool_name.hpp): a crash before that leaves nothing that looks like a
  // pool, and on fsdax a power failure after this returned leaves the pool. A complete pool that lost its name in a
  // power failure gets it back, for any create_bytes. Throws pmlab::error: no such pool, not a pool, another layout,
  // truncated or corrupted, no space, open elsewhere; the file is then closed and unlocked. Damaged bytes in a file may
  // make libpmemobj itself crash or hang: probe_pool.hpp tests that in another process.
  //
  // A process that was killed leaves its last stores in the caches, where this one sees them and the next power failure
  // takes them. So an opening that no orderly end precedes writes all lines of the pool back first, in time that grows
  // with its data (0.05 s a GB). Ordinary files are left out, since they survive no power failure, and private mappings
  // (map_pools_privately), which store nothing.
  explicit pmem(std::string path, pmem_options options = {}) : path_(std::move(path)) {
    descriptor file = opened_file();
    const bool existed = file.is_open() || find_or_make(options, file);
    if (existed) open(file, options);
    start(options, file, existed);
  }

  // Writes all lines back first if flushes were left out on a platform that is not known to save its caches: the next
  // run may open the pool as `adr`, and make entries durable that hang below lines of this one. A child process that
  // was forked since only gives its mapping back: the pool stays that of the process that has opened it. REQUIRES: no
  // operation is under way, in any thread.
  ~pmem() {
    if (!pool_.is_of_this_process()) {
      // libpmemobj still knows a pool at these addresses, and refuses another one there.
      if (!kept_from_children_) block_addresses(base_, capacity_bytes_, MAP_FIXED);
      if (collapse_) collapse_->leave_to_parent();
      return;
    }
    if (caches_are_persistent_ && !platform_saves_caches()) {
      pmem_deep_flush(base_, capacity_bytes_);  // (E1), whatever libpmem decided about its other flushes
      pmem_drain();
    }
    contents_->seal.store(seal_of_pool(base_, capacity_bytes_).value_or(no_seal), std::memory_order_release);  // (E2)
    // (E1) < (E3): a pool that is marked as closed has no line in the caches alone.
    // (E2) < (E3): one line, so a pool that is marked as closed has the seal of this closing.
    mark(not_open);  // (E3) libpmemobj has its own mark, which follows.
  }

  pmem(const pmem&) = delete;
  pmem& operator=(const pmem&) = delete;

  // True if there is no file at `path`, but a complete pool that lost its name in a power failure: the constructor will
  // rename it, and `create_bytes` is not used.
  [[nodiscard]] static bool has_lost_its_name(const std::string& path) {
    if (::access(path.c_str(), F_OK) == 0) return false;
    const descriptor file(::open(unfinished_name(path).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return file.is_open() && is_complete(file.get());
  }

  // True if pmlab has closed the pool at `path` in order, and the words that libpmemobj follows at an opening are those
  // of that moment: the opening cannot make libpmemobj crash. False: the pool was left open, is open, was last closed
  // by a release without the seal, is damaged, or there is none. The words of indexes are not concerned: each index
  // checks those that it follows. Costs a millisecond, in any size.
  [[nodiscard]] static bool is_as_closed(const std::string& path) {
    const descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    const std::uint64_t bytes = file.is_open() ? capacity_of(file.get()) : 0;
    if (bytes == 0) return false;
    try {
      const mapped_file mapped(path, file.get(), bytes);
      const words_of_memory words{mapped.begin(), mapped.bytes()};
      const auto root_word = [&](std::uint64_t offset) { return root_word_of_pool(words, offset, alignof(contents)); };
      const std::uint64_t seal = root_word(offsetof(contents, seal)).value_or(no_seal);
      return seal != no_seal && root_word(offsetof(contents, opening)) == not_open &&
             is_seal_of_pool(seal, reinterpret_cast<const char*>(mapped.begin()), mapped.bytes());
    } catch (const error&) {
      return false;  // it cannot be mapped: opening it gives the reason
    }
  }

  class publication {
   public:
    // Nothing happens yet. `medium` outlives it.
    explicit publication(pmem& medium) noexcept : medium_(medium) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      if (count_ != 0) pmemobj_cancel(medium_.handle(), actions_.data(), count_);
    }

    // Throws pmlab::error, as store and release do, if this is more than publication_limit changes.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      pobj_action& action = next();
      const std::optional<std::uint64_t> size_class = medium_.size_class_of(bytes, alignment);
      if (!size_class) return nullptr;
      const PMEMoid block = pmemobj_xreserve(medium_.handle(), &action, bytes, 0, POBJ_CLASS_ID(*size_class));
      if (OID_IS_NULL(block)) return nullptr;
      ++count_;
      return medium_.base_ + block.off;
    }

    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) {
      pmemobj_set_value(medium_.handle(), &next(), reinterpret_cast<std::uint64_t*>(&word), value);
      ++count_;
    }

    void release(void* block, std::size_t /*bytes*/) {
      pmemobj_defer_free(medium_.handle(), pmemobj_oid(block), &next());
      ++count_;
    }

    void commit() {
      // Fails only for more actions than fit a lane, which publication_limit excludes. Then nothing was changed.
      if (pmemobj_publish(medium_.handle(), actions_.data(), count_) != 0)
        throw error("pool " + medium_.path_ + " cannot publish: " + pmemobj_errormsg(), "give it more space");
      count_ = 0;
    }

   private:
    // The place of the next change. It counts once it is filled in.
    [[nodiscard]] pobj_action& next() {
      if (count_ == actions_.size())
        throw error("a publication of more than " + std::to_string(publication_limit) + " changes",
                    "publish at most media::publication_limit at once");
      return actions_[count_];
    }

    pmem& medium_;
    std::array<pobj_action, publication_limit> actions_;
    std::size_t count_ = 0;
  };

  [[nodiscard]] std::string name() const { return "pmem:" + path_; }
  // The path as it was given.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // The failures that the pool's content survives, as text.
  [[nodiscard]] std::string_view survives() const noexcept { return media::survives(backing_); }
  // The kind of memory that the path leads to.
  [[nodiscard]] media::backing backed_by() const noexcept { return backing_; }
  // What the platform saves: found when the pool was opened, or given by its options. Where it saves the caches,
  // flushes are left out.
  [[nodiscard]] persistence_domain persistence() const noexcept { return persistence_; }
  // The bytes that the opening has written back, since no process had closed the pool; 0: it had no need to.
  [[nodiscard]] std::uint64_t written_back_bytes() const noexcept { return written_back_bytes_; }
  // The best one of this processor.
  [[nodiscard]] flush_instruction flushes_with() const noexcept { return instruction_; }

  template <class T>
  [[nodiscard]] T* resolve(pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(base_ + p.word());
  }
  template <class T>
  [[nodiscard]] pointer<T> locate(const T* object) const noexcept {
    return pointer<T>(static_cast<std::uint64_t>(reinterpret_cast<const char*>(object) - base_));
  }

  // One past the greatest word of a pointer into this pool: the pool's size in bytes. See `can_name`.
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept {
    return capacity_bytes_ != 0 ? capacity_bytes_ : std::numeric_limits<std::uint64_t>::max();
  }

  void flush(const void* start, std::size_t bytes) noexcept {
    if (!caches_are_persistent_) flush_lines(instruction_, start, bytes);
  }
  void fence() noexcept { store_fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    pmem_memcpy(target, source, bytes, PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_NODRAIN);
  }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  [[nodiscard]] root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    const std::scoped_lock lock(mutex_);
    return contents_->roots.find_or_add(name, layout, version, [this](const root_entry& e) { persist(*this, e); });
  }

  // The roots that the pool has, in the order in which they were added.
  [[nodiscard]] std::vector<root_facts> roots() {
    const std::scoped_lock lock(mutex_);
    return contents_->roots.all();
  }

  [[nodiscard]] usage used() const {
    std::uint64_t bytes = 0;
    pmemobj_ctl_get(handle(), "stats.heap.curr_allocated", &bytes);
    return {bytes, capacity_bytes_};
  }

 private:
  static constexpr std::uint64_t not_open = 0;
  static constexpr std::uint64_t no_seal = 0;
  // Content of the pool's root object.
  struct contents {
    root_table roots;
    std::atomic<std::uint64_t> complete{0};
    // Which opening has the pool, or was the last and had no orderly end (new_opening). Pools of releases without this
    // word have not_open.
    std::atomic<std::uint64_t> opening{not_open};
    // The seal of the last orderly end (pool_seal.hpp). Means nothing while the pool is open, or behind a release
    // without this word: then it is no_seal, or that of an earlier closing, which libpmemobj's count of openings makes
    // untrue.
    std::atomic<std::uint64_t> seal{no_seal};
  };
  // The root object of a pool must not grow: libpmemobj would move it.
  static_assert(sizeof(contents) == sizeof(root_table) + cache_line_bytes);

  // libpmemobj aligns the root object to 16 bytes only, and the entries of the root table must not straddle lines: so
  // the root object is larger than its contents, which begin at the next multiple of 64. It never moves in the pool.
  struct pool_root {
    std::array<std::byte, sizeof(contents) + alignof(contents)> room;
  };

  // libpmemobj's handle, closed with its owner: also when a constructor throws behind it. A child process does not
  // close it: libpmemobj's locks and lists of the parent are in the mapping that both have, and would go.
  class open_pool {
   public:
    open_pool() = default;
    open_pool(const open_pool&) = delete;
    open_pool& operator=(const open_pool&) = delete;
    ~open_pool() {
      if (handle_ != nullptr && is_of_this_process()) pmemobj_close(handle_);
    }
    [[nodiscard]] bool is_of_this_process() const noexcept { return opener_.is_this_one(); }
    void close() noexcept { pmemobj_close(std::exchange(handle_, nullptr)); }
    void take(PMEMobjpool* pool) noexcept { handle_ = pool; }
    [[nodiscard]] PMEMobjpool* handle() const noexcept { return handle_; }
    [[nodiscard]] void* root() const noexcept { return pmemobj_direct(pmemobj_root(handle_, sizeof(pool_root))); }

   private:
    PMEMobjpool* handle_ = nullptr;
    maker_process opener_;
  };

  [[nodiscard]] contents* aligned_contents() {
    void* start = pool_.root();
    std::size_t room = sizeof(pool_root);
    return static_cast<contents*>(std::align(alignof(contents), sizeof(contents), start, room));
  }

  struct size_class {
    std::size_t bytes;
    std::size_t alignment;
    std::uint64_t id;
    bool is_of_runs = false;  // it is one of an earlier opening: `bytes` may be more than were asked for then
  };

  [[nodiscard]] PMEMobjpool* handle() const noexcept { return pool_.handle(); }

  // The file at the path; none: nothing has the name. O_NONBLOCK, since a FIFO would wait for its other end.
  [[nodiscard]] descriptor opened_file() const {
    descriptor file(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (file.is_open()) return file;
    if (errno != ENOENT)
      throw error("cannot open pool " + path_ + ": " + std::strerror(errno),
                  remedy_for(errno, "check the path and its permissions"));
    // A new pool would replace the link, and hide the one on a file system that is not mounted.
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
      throw error("cannot reach pool " + path_ + ": it is a link that leads nowhere",
                  "mount the file system that it leads to, or mend the link; its data may be there");
    return file;
  }

  // There was no file at the path: true if `file` is one that there is now; false if a new pool is made and open, in
  // `file`.
  bool find_or_make(const pmem_options& options, descriptor& file) {
    if (options.create_bytes == 0 && ::access(unfinished_name(path_).c_str(), F_OK) != 0) refuse_what_is_missing();
    if (options.create_bytes != 0) refuse_long_name();
    const folder_lock lock(path_);
    for (;;) {
      // Another process may have created it since.
      file = opened_file();
      if (file.is_open()) return true;
      if (adopt_unfinished(path_, is_complete)) continue;
      if (options.create_bytes == 0) refuse_what_is_missing();
      if (create(options, file)) return false;
    }
  }

  [[noreturn]] void refuse_what_is_missing() const {
    throw error("there is no pool at " + path_, "name an existing pool, or give a size to make one");
  }

  // True for the file of a pool that got as far as mark_complete().
  static bool is_complete(int file) {
    return layout_of_pool(file) == pool_layout &&
           root_word_of_pool(words_of_file{file}, offsetof(contents, complete), alignof(contents)) == 1;
  }

  void open(const descriptor& file, const pmem_options& options) {
    reject_what_is_no_pool(file.get());
    backing_ = backing_of(file.get());
    // The process that created the pool may have been killed before it could sync the name. On a disk that can take
    // long, and there is no durability guarantee.
    if (backing_ == backing::fs_dax || backing_ == backing::tmpfs) sync_folder_of(path_behind_links());
    if (options.bypass_msync) bypass_msync(backing_);
    // Each step is on the file that was opened: another one may be renamed over it at any time, but for a device.
    std::string name = backing_ == backing::device_dax ? path_ : name_of_descriptor(file.get(), path_);
    descriptor copy;
    // (W1) < (W2): libpmemobj's recovery, and every store of this process, finds durable what it builds on.
    {
      const lock_of_pool lock(file.get());
      if (lock.is_elsewhere()) refuse_open_one();
      if (options.reserve_space) reserve_space(file.get(), name);
      write_back_what_was_left(file.get());  // (W1)
      if (maps_privately() && can_only_be_read(name)) copy = copy_in_memory(file.get(), path_);
    }
    if (copy.is_open()) name = name_of_descriptor(copy.get(), path_);
    // Not by libpmemobj++: it allocates behind this call, and a failure there leaves the pool open for good.
    pool_.take(pmemobj_open(name.c_str(), pool_layout));
    if (pool_.handle() == nullptr) refuse_as_libpmemobj(errno, name);
    if (!leads_to(path_, file.get()))
      throw error("pool " + path_ + " was replaced or removed while it was opened", "open it again");
  }

  // libpmemobj opens a file for writing, also to map it privately.
  [[nodiscard]] static bool can_only_be_read(const std::string& name) {
    const descriptor writable(::open(name.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    return !writable.is_open() && (errno == EACCES || errno == EPERM || errno == EROFS);
  }

  // The path of the file that has the pool's name last.
  [[nodiscard]] std::string path_behind_links() const {
    const std::unique_ptr<char, decltype(&std::free)> path(::realpath(path_.c_str(), nullptr), &std::free);
    return path != nullptr ? path.get() : path_;
  }

  // `failure`: errno, behind pmemobj_open(name).
  [[noreturn]] void refuse_as_libpmemobj(int failure, const std::string& name) const {
    if (failure == EWOULDBLOCK) refuse_open_one();
    // It finds pools by their UUIDs, and a child process has its parent's table of them.
    if (failure == EEXIST)
      refuse("this process has a copy of it open, or was forked from one that had it open",
             "close the copy first, or open it in a process that begins by exec");
    std::string why = pmemobj_errormsg();
    if (const std::size_t at = why.find(name); at != std::string::npos) why.replace(at, name.size(), path_);
    const bool is_forbidden = failure == EROFS || failure == EACCES || failure == EPERM;
    refuse(why, is_forbidden ? what_writes : remedy_for(failure, what_to_check));
  }

  [[noreturn]] void refuse_open_one() const { refuse("it is open already", what_to_check); }

  static constexpr const char* what_to_check =
      "check that it is a pmlab pool, complete, and not open in another process";

  static constexpr const char* what_writes =
      "a pool is opened for writing, also to be read only: let this user write to it, or copy it to where that is "
      "possible";

  [[noreturn]] void refuse(const std::string& why, const std::string& remedy) const {
    throw error("cannot open pool " + path_ + ": Failed opening pool: " + why, remedy);
  }

  // The lock by which libpmemobj excludes other openings. It takes it itself, from elsewhere: so this one must be free
  // then.
  class lock_of_pool {
   public:
    explicit lock_of_pool(int file) noexcept
        : file_(file), failure_(::flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno) {}
    lock_of_pool(const lock_of_pool&) = delete;
    lock_of_pool& operator=(const lock_of_pool&) = delete;
    ~lock_of_pool() {
      if (failure_ == 0) ::flock(file_, LOCK_UN);
    }
    [[nodiscard]] bool is_elsewhere() const noexcept { return failure_ == EWOULDBLOCK; }

   private:
    int file_;
    int failure_;
  };

  void reject_what_is_no_pool(int file) const {
    struct stat status {};
    std::string wrong;
    if (fstat(file, &status) != 0)
      wrong = std::strerror(errno);
    else if (S_ISDIR(status.st_mode))
      wrong = "it is a directory";
    else if (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))
      wrong = "it is neither a file nor a device";
    else if (S_ISCHR(status.st_mode) && capacity_of(status) == 0)
      wrong = "it is no device of persistent memory";
    else if (S_ISREG(status.st_mode) && status.st_size < static_cast<off_t>(least_pool_bytes))
      wrong = "it has " + std::to_string(status.st_size) + " bytes, and no pool is smaller than " +
              std::to_string(least_pool_bytes);
    if (!wrong.empty()) throw error(path_ + " is not a pool: " + wrong, "name another file, or remove this one");
    const std::optional<std::string> layout = layout_of_pool(file);
    if (layout && *layout != pool_layout)
      throw error("pool " + path_ + " has layout '" + *layout + "', and this program reads '" + pool_layout + "'",
                  "open it with the program that made it (if pmlab: another release), and copy the entries over");
  }

  // Allocates space for holes of the pool file. No error if the file system does not support it, or the file is
  // read-only: opening the pool reports the latter. `name` leads to the file. REQUIRES: the lock of the pool is held:
  // what is refused stays as it is.
  void reserve_space(int readable, const std::string& name) const {
    struct stat status {};
    constexpr off_t block = 512;  // unit of st_blocks on every file system
    if (fstat(readable, &status) != 0 || !S_ISREG(status.st_mode) || status.st_blocks * block >= status.st_size) return;
    if (layout_of_pool(readable) != pool_layout) return;
    const descriptor file(::open(name.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    int failure = 0;
    do failure = ::fallocate(file.get(), 0, 0, status.st_size) == 0 ? 0 : errno;
    while (failure == EINTR);
    if (failure == ENOSPC || failure == EDQUOT || failure == EFBIG)
      throw error("pool " + path_ + " has holes, and its file system has no space for them: " + std::strerror(failure) +
                      " for " + std::to_string(status.st_size - status.st_blocks * block) + " of its " +
                      std::to_string(status.st_size) + " bytes",
                  "free some there, or copy the pool to where there is space");
  }

  // libpmem treats tmpfs (and any file that is no DAX file) as a disk and calls msync at every persist. It reads this
  // variable once in the life of a process: at this call, and not when the first pool is opened, so that no child
  // process inherits it.
  static void bypass_msync(media::backing b) {
    if (b != backing::tmpfs && b != backing::page_cache) return;
    static std::mutex one_at_a_time;
    constexpr const char* variable = "PMEM_IS_PMEM_FORCE";
    const std::scoped_lock lock(one_at_a_time);
    if (std::getenv(variable) != nullptr) return;
    ::setenv(variable, "1", 0);
    static_cast<void>(pmem_is_pmem(&one_at_a_time, 1));
    ::unsetenv(variable);
  }

  // Makes the pool, open in `file`. False: something has the path by now, and nothing was made.
  [[nodiscard]] bool create(const pmem_options& options, descriptor& file) {
    const std::uint64_t bytes = options.create_bytes;
    if (bytes < least_pool_bytes)
      throw error("a pool of " + std::to_string(bytes) + " bytes is too small",
                  "use at least " + std::to_string(least_pool_bytes));
    const std::string unfinished = unfinished_name(path_);
    const int failure = std::remove(unfinished.c_str()) == 0 ? 0 : errno;
    if (failure != 0 && ::access(unfinished.c_str(), F_OK) == 0) refuse_unfinished(path_, failure);
    {
      const descriptor probe(::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!probe.is_open())
        throw error("cannot make pool " + path_ + ": " + std::strerror(errno),
                    "check that the folder exists and is writable");
      backing_ = backing_of(probe.get());
    }
    std::remove(unfinished.c_str());
    if (options.bypass_msync) bypass_msync(backing_);
    bool is_named = false;
    try {
      pool_.take(pmemobj_create(unfinished.c_str(), pool_layout, bytes, 0600));
      if (pool_.handle() == nullptr)
        throw error("cannot make a pool of " + std::to_string(bytes) + " bytes at " + path_ +
                        ": Failed creating pool: " + pmemobj_errormsg(),
                    "check the free space there (df) and the requested size");
      contents_ = aligned_contents();
      mark_complete();  // (M1)
      file = descriptor(::open(unfinished.c_str(), O_RDONLY | O_CLOEXEC));
      // Who makes a pool without the lock of the folder may have put its own file there.
      if (!is_of_pool(file.get(), handle()))
        throw error("cannot make pool " + path_ + ": another program has replaced " + unfinished,
                    "let one program at a time make it");
      // (M1) < (M2): a file that is taken for complete is.
      // (M2) < (M3): a name that survives leads to a file with all its blocks.
      sync_file(file.get(), unfinished);                    // (M2)
      is_named = rename_durably_to_new(unfinished, path_);  // (M3)
    } catch (...) {
      remove_own(unfinished);
      throw;
    }
    if (is_named) return true;
    remove_own(unfinished);
    pool_.close();
    return false;
  }

  // Another program's file may have the name. libpmemobj itself removes what it could not make.
  void remove_own(const std::string& unfinished) const {
    const descriptor there(::open(unfinished.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (handle() != nullptr && is_of_pool(there.get(), handle())) std::remove(unfinished.c_str());
  }

  // libpmemobj makes a longer name of it when it opens a pool, and fails if there can be no such file.
  void refuse_long_name() const {
    constexpr std::string_view longest_suffix = "_r0_p0_badblocks.txt";
    constexpr std::size_t most = NAME_MAX - longest_suffix.size();
    const std::size_t bytes = path_.size() - (path_.find_last_of('/') + 1);
    if (bytes > most)
      throw error("cannot make pool " + path_ + ": its file name has " + std::to_string(bytes) + " bytes",
                  "use a name of at most " + std::to_string(most) + " bytes");
  }

  void mark_complete() {
    contents_->complete.store(1, std::memory_order_release);
    pmemobj_persist(handle(), contents_, sizeof(contents));
  }

  // The domain that libpmem's own flushes follow. Its PMEM_NO_FLUSH=1 is not followed: to flush in vain is safe.
  [[nodiscard]] static persistence_domain domain_of_libpmem() {
    const char* const no_flush = std::getenv("PMEM_NO_FLUSH");
    if (no_flush != nullptr && std::string_view(no_flush) == "0") return persistence_domain::adr;
    return platform_saves_caches() ? persistence_domain::eadr : persistence_domain::adr;
  }

  // `existed`: it was not made by this process.
  void start(const pmem_options& options, const descriptor& file, bool existed) {
    base_ = reinterpret_cast<char*>(handle());
    capacity_bytes_ = capacity_of(file.get());
    contents_ = aligned_contents();
    if (existed && !holds(contents_))
      throw error("pool " + path_ + " is damaged: its root object is not in it", "restore it from a copy");
    // A device cannot get its name last: `pmempool create` makes its pool, whose root object is all zeroes.
    if (backing_ == backing::device_dax) mark_complete();
    if (existed && contents_->complete.load(std::memory_order_acquire) != 1)
      throw error("pool " + path_ + " was never completed", "remove it and make it again");
    persistence_ = options.persistence.value_or(domain_of_libpmem());
    caches_are_persistent_ = keeps_caches(persistence_);
    instruction_ = best_flush_instruction();
    if (options.keep_from_children) {
      kept_from_children_.emplace(base_, capacity_bytes_);
      static_cast<void>(::madvise(base_, capacity_bytes_, MADV_DONTFORK));
    }
    // Without this the allocator's count of live bytes would not survive a restart.
    enum pobj_stats_enabled statistics = POBJ_STATS_ENABLED_BOTH;
    pmemobj_ctl_set(handle(), "stats.enabled", &statistics);
    // libpmemobj finds the free space in a run of blocks again only if it knows their class when it first reads the
    // heap, and when a block is freed. So the classes of small aligned blocks, of which an index may have many, are
    // registered before the first allocation, each as aligned as its size allows; and those of all blocks that the pool
    // holds. Else a full pool that was opened again would stay full, whatever is erased.
    constexpr std::size_t largest_small_block = 1024;
    for (std::size_t bytes = cache_line_bytes; bytes <= largest_small_block; bytes += cache_line_bytes)
      static_cast<void>(size_class_of(bytes, std::min(bytes & (~bytes + 1), xpline_bytes)));
    if (existed) {
      register_classes_of_runs();
      // Another process had the pool, and was killed with it, between (W1) and the lock that libpmemobj takes.
      // libpmemobj's own recovery has run by then.
      if (contents_->opening.load(std::memory_order_acquire) != left_open_) write_back_what_was_left(file.get());
    }
    mark(new_opening());  // (W2)
    if (!options.huge_pages || backing_ != backing::tmpfs) return;
    // A new pool is empty, and no thread waits for its entries. An existing one will be read at once.
    if (existed)
      collapse_.emplace(base_, capacity_bytes_);
    else
      collapse_to_huge_pages(base_, capacity_bytes_);
  }

  [[nodiscard]] static bool platform_saves_caches() noexcept { return pmem_has_auto_flush() == 1; }

  void mark(std::uint64_t opening) noexcept {
    contents_->opening.store(opening, std::memory_order_release);
    flush_lines(instruction_, &contents_->opening, sizeof contents_->opening);
    store_fence();
  }

  // A number that no opening of the pool had before, but by chance: "open" and 32 bits of the time. Never not_open.
  [[nodiscard]] static std::uint64_t new_opening() noexcept {
    constexpr std::uint64_t open_upper = 0x6e65'706fU;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::uint64_t nanoseconds =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
    return open_upper << 32 | (nanoseconds & 0xffff'ffffU);
  }

  // Also behind a power failure, where the caches have nothing: no number tells the start of a kernel from that of the
  // memory below it (guests, kexec). The file is mapped for it: libpmemobj recovers a pool where it maps it.
  void write_back_what_was_left(int file) {
    if (backing_ == backing::page_cache || platform_saves_caches() || maps_privately()) return;
    const std::uint64_t bytes = capacity_of(file);
    if (bytes == 0) return;  // no pool: libpmemobj refuses it
    const mapped_file mapped(path_, file, bytes);
    left_open_ = root_word_of_pool(words_of_memory{mapped.begin(), mapped.bytes()}, offsetof(contents, opening),
                                   alignof(contents))
                     .value_or(not_open);
    if (left_open_ != not_open) written_back_bytes_ += write_back(file, mapped, best_flush_instruction());
  }

  [[nodiscard]] bool holds(const contents* c) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(c) - reinterpret_cast<std::uintptr_t>(base_);
    return c != nullptr && offset < pointer_bound() && pointer_bound() - offset >= sizeof(contents);
  }

  // True if libpmemobj's openings store nothing (map_pools_privately).
  [[nodiscard]] static bool maps_privately() noexcept {
    int answer = 0;
    return pmemobj_ctl_get(nullptr, "copy_on_write.at_open", &answer) == 0 && answer != 0;
  }

  // The allocation class of blocks of this size and alignment. Aligned blocks (nodes, segments, levels) get a class of
  // their own for each size: without headers, several to a run of chunks. All other blocks use libpmemobj's own classes
  // (0), whose blocks are aligned to 16. None: libpmemobj has no more classes.
  std::optional<std::uint64_t> size_class_of(std::size_t bytes, std::size_t alignment) {
    // In a small pool the runs are small, too, so that there is room for one of each class.
    constexpr std::size_t usual_run_bytes = std::size_t{1} << 20;
    const std::size_t run_bytes = std::min(usual_run_bytes, pointer_bound() / 32);
    constexpr std::size_t least_units = 2;  // a run of one unit can be described, and never allocated
    constexpr std::size_t default_alignment = 16;
    if (alignment <= default_alignment) return 0;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    const std::scoped_lock lock(mutex_);
    for (const size_class& known : size_classes_)
      if (known.bytes == bytes && known.alignment % alignment == 0) return known.id;
    try {
      size_classes_.reserve(size_classes_.size() + 1);  // a class that was made must not get lost
    } catch (const std::bad_alloc&) {
      return std::nullopt;
    }
    // libpmemobj treats two classes of one size as the same, with any alignments: a slightly larger size avoids that.
    constexpr std::size_t tries = 32;
    std::size_t unit = bytes;
    for (std::size_t i = 0; i < tries; ++i, unit += alignment) {
      for (const size_class& known : size_classes_)
        if (known.is_of_runs && known.bytes == unit && known.alignment % alignment == 0) return known.id;
      pobj_alloc_class_desc wanted{};
      wanted.unit_size = unit;
      wanted.alignment = alignment;
      wanted.units_per_block = static_cast<unsigned>(std::max(run_bytes / unit, least_units));
      wanted.header_type = POBJ_HEADER_NONE;
      if (pmemobj_ctl_set(handle(), "heap.alloc_class.new.desc", &wanted) != 0) continue;
      size_classes_.push_back({bytes, alignment, wanted.class_id});
      return wanted.class_id;
    }
    return std::nullopt;
  }

  // The classes of the runs that an earlier opening made. Without memory for one, or where libpmemobj refuses it, the
  // space of its freed blocks is found at a later opening only.
  void register_classes_of_runs() {
    constexpr std::size_t most = 64;  // more has a damaged pool only
    constexpr std::size_t most_alignment = 4096;
    constexpr std::size_t run_header = 16;
    std::vector<run_kind> met;
    const auto register_class = [&](const run_kind& run) {
      if (met.size() == most || std::find(met.rbegin(), met.rend(), run) != met.rend()) return;
      met.push_back(run);
      const bool is_sound = std::has_single_bit(run.alignment) && run.alignment <= most_alignment &&
                            run.block_bytes != 0 && run.block_bytes % run.alignment == 0 &&
                            run.block_bytes < run.run_bytes / 2;
      if (!is_sound) return;
      pobj_alloc_class_desc wanted{};
      wanted.unit_size = run.block_bytes;
      wanted.alignment = run.alignment;
      wanted.units_per_block = static_cast<unsigned>((run.run_bytes - run_header - run.alignment) / run.block_bytes);
      wanted.header_type = POBJ_HEADER_NONE;
      const std::scoped_lock lock(mutex_);
      size_classes_.reserve(size_classes_.size() + 1);
      if (pmemobj_ctl_set(handle(), "heap.alloc_class.new.desc", &wanted) == 0)
        size_classes_.push_back({run.block_bytes, run.alignment, wanted.class_id, true});
    };
    try {
      for_each_aligned_run(base_, capacity_bytes_, register_class);
    } catch (const std::bad_alloc&) {
    }
  }

  std::string path_;
  open_pool pool_;
  contents* contents_ = nullptr;
  char* base_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  media::backing backing_ = backing::page_cache;
  flush_instruction instruction_ = flush_instruction::clflush;
  persistence_domain persistence_ = persistence_domain::adr;
  bool caches_are_persistent_ = false;
  std::uint64_t left_open_ = not_open;  // the opening that was the last, and had no orderly end
  std::uint64_t written_back_bytes_ = 0;
  std::optional<forks::blocked_range> kept_from_children_;  // after `pool_`
  std::mutex mutex_;
  std::vector<size_class> size_classes_;
  std::optional<background_collapse> collapse_;  // after `pool_`: it ends before the pool is unmapped
};

static_assert(medium<pmem>);

}  // namespace pmlab::media
