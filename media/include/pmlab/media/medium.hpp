// The medium: the memory that an index lives in, and the cost of accessing it.
//
// An index takes a medium as a template parameter and does not depend on its kind. All differences between DRAM, a pool
// of persistent memory, an emulated device and a counter of accesses are behind the operations below.
//
//   medium          made of                                         header
//   dram            pages of the kernel, or a jemalloc arena        media/dram.hpp
//   pmem            libpmemobj pool on fsdax, devdax or tmpfs       media/pmem.hpp
//   counted<M>      M, and a count of every line, flush and fence   media/counted.hpp
//   emulated<M>     M, and the delays of a device profile           media/emulated.hpp
//
// Rules for code that runs on a medium:
//  * Words that are shared between threads or must survive a crash are `std::atomic<8 bytes>`, stored with release
//    order where the order matters. Stores to one cache line become durable in the order in which they were made;
//    stores to different lines only in the order that flush + fence enforce between them.
//  * `flush` starts the write-back of lines; `fence` waits for the write-backs that this thread started. Only stores
//    that were flushed and then fenced are persisted.
//  * What a medium holds when it is opened is durable: behind a process that was killed, it writes its lines back
//    first. So no index has a rule for stores that a killed process made visible and the next power failure takes.
//  * Blocks are allocated and freed through a `publication`: allocations, releases and 8-byte stores that a crash
//    either keeps all or drops all. So nothing leaks, at any instant of the crash.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace pmlab::media {

// Bytes that live blocks of a medium hold, as the medium's own allocator counts them.
struct usage {
  std::uint64_t allocated_bytes = 0;  // handed out to live blocks, internal rounding included
  std::uint64_t capacity_bytes = 0;   // 0: no fixed limit
};

// A set of changes to a medium that becomes durable atomically. (PMDK: reserve + publish.)
//
//   publication<M> change(medium);                    // nothing happens yet
//   void* block = change.allocate(bytes, alignment);  // nullptr: no space; private until commit
//   change.store(word, value);                        // `word` lives in the medium
//   change.release(block, bytes);                     // freed at commit
//   change.commit();                                  // all of it, or (crash before) none of it; durable on return
//
// If it is destroyed without commit, its allocations are freed and nothing changes. The caller must persist the blocks'
// contents before `commit`. Not thread-safe itself; any number of threads may each have one.
template <class P>
concept publication = requires(P& p, void* block, std::size_t bytes, std::atomic<std::uint64_t>& word) {
  { p.allocate(bytes, bytes) } -> std::same_as<void*>;
  { p.store(word, std::uint64_t{}) } -> std::same_as<void>;
  { p.release(block, bytes) } -> std::same_as<void>;
  { p.commit() } -> std::same_as<void>;
};

// Blocks allocated + words stored + blocks released by one publication: at most this many.
inline constexpr std::size_t publication_limit = 16;

inline constexpr std::size_t root_limit = 16;       // roots that a medium has room for
inline constexpr std::size_t root_name_limit = 23;  // characters of a root's name, and of a layout's

// One name in a medium's table of roots. `word` is 0 until the owner publishes its root object into it.
struct root {
  std::atomic<std::uint64_t>* word;  // in the medium; never nullptr
};

// Optional operations of a medium. Each medium declares which of these it has, and its concept checks the declaration:
// a wrapper that forgets to forward one does not compile. A `requires` for the function alone would silently be false.
struct optional_parts {
  bool operations = false;     // begin_operation(), end_operation(): called around each operation of a thread
  bool prefetches = false;     // prefetch(start, bytes): called for reads that begin now. If a medium has none, its
                               // annotate_read does nothing
  bool pointer_bound = false;  // pointer_bound(): one past the greatest word of a pointer
  bool varying_durability = false;  // is_durable(): only some objects of this class are; `durable` is then true
};

// The sizes of an index's structures beside its entries, on a medium that defines them (`static constexpr index_sizes
// sizes`). The defaults are for millions of entries and many threads.
struct index_sizes {
  // Version locks that the objects of an index share; a power of two. 0: as many as the index usually has.
  std::size_t lock_stripes = 0;
  // Slabs and pages from which nodes and records are cut have few places: a short history fills several.
  bool small_slabs = false;
  // A retired block is reused as soon as no reader can hold it, not when a batch of them is full.
  bool reclaims_at_once = false;
  // Free leaves are kept in reserve, so that a group of them is not freed and allocated again.
  bool keeps_reserve = true;
  // Recovery uses all threads of `sync::recovery_threads`; else the calling thread alone.
  bool recovers_in_parallel = true;
};

// For media on which an index is opened thousands of times, each for a history of a few operations. These must meet: in
// a lock, and in memory that is used again.
[[nodiscard]] constexpr index_sizes sizes_for_short_histories(std::size_t lock_stripes) noexcept {
  return {lock_stripes, true, true, false, false};
}

// The sizes of an index on medium `M`.
template <class M>
inline constexpr index_sizes sizes_on = [] {
  if constexpr (requires { M::sizes; })
    return index_sizes(M::sizes);
  else
    return index_sizes{};
}();

// How many version locks an index on medium `M` has: `usual`, unless the medium has a number. A power of two.
template <class M>
[[nodiscard]] constexpr std::size_t lock_stripes_on(std::size_t usual) noexcept {
  return sizes_on<M>.lock_stripes != 0 ? sizes_on<M>.lock_stripes : usual;
}

// How many retired blocks of an index on medium `M` make a batch: `usual`, or 1.
template <class M>
[[nodiscard]] constexpr std::size_t reclaim_batch_on(std::size_t usual) noexcept {
  return sizes_on<M>.reclaims_at_once ? 1 : usual;
}

namespace detail {

template <class M>
concept begins_operations = requires(M& m) {
  m.begin_operation();
};
template <class M>
concept ends_operations = requires(M& m) {
  m.end_operation();
};
template <class M>
concept hears_prefetches = requires(M& m, const void* start, std::size_t bytes) {
  m.prefetch(start, bytes);
};
template <class M>
concept has_pointer_bound = requires(const M& m) {
  m.pointer_bound();
};
template <class M>
concept tells_durability = requires(const M& m) {
  m.is_durable();
};

}  // namespace detail

// Declares its optional parts (`static constexpr optional_parts parts`), and has these and no others.
template <class M>
concept declares_its_parts = requires {
  { M::parts } -> std::convertible_to<optional_parts>;
  requires M::parts.operations == detail::begins_operations<M>;
  requires M::parts.operations == detail::ends_operations<M>;
  requires M::parts.prefetches == detail::hears_prefetches<M>;
  requires M::parts.pointer_bound == detail::has_pointer_bound<M>;
  requires M::parts.varying_durability == detail::tells_durability<M>;
};

template <class M>
concept medium = requires(M& m, const M& cm, const void* address, void* target, std::size_t bytes, pointer<int> p,
                          const int* object, std::string_view name, std::string_view layout, std::uint64_t version) {
  requires declares_its_parts<M>;
  // True if flushed and fenced stores survive the process.
  { M::durable } -> std::convertible_to<bool>;
  requires publication<typename M::publication>;
  // "dram", "pmem:/dev/shm/pool", "emulated:aep", ...: as a user would name it.
  { cm.name() } -> std::convertible_to<std::string>;
  { cm.resolve(p) }
  noexcept->std::same_as<int*>;
  { cm.locate(object) }
  noexcept->std::same_as<pointer<int>>;
  { m.flush(address, bytes) }
  noexcept;
  { m.fence() }
  noexcept;
  // Bulk copy, written back without a flush (a fence is still needed). Target 64-byte aligned; a multiple of 64 bytes.
  { m.copy(target, address, bytes) }
  noexcept;
  // Announces that the caller is about to read these bytes: empty, except where reads are counted or charged.
  { m.annotate_read(address, bytes) }
  noexcept;
  // Finds, or adds, the root `name` (at most root_name_limit characters) of an index whose layout is `layout` (for
  // example "cceh") in `version`. Throws pmlab::error if the name belongs to another layout or version or the table is
  // full. Thread-safe; durable on return.
  { m.named_root(name, layout, version) } -> std::same_as<root>;
  { cm.used() } -> std::same_as<usage>;
};

namespace detail {

// Only an object may be flushed, never a raw pointer to one. `flush(m, p)` with `T* p` would write back the line that
// holds the pointer and leave the object in the cache; here it does not compile (defect A9).
template <class T>
concept flushable_object = !std::is_pointer_v<T> && !std::is_null_pointer_v<T> && !std::is_function_v<T>;

}  // namespace detail

// Starts the write-back of every line of `object`, which lives in `m`. Durable after the next fence of this thread.
template <medium M, detail::flushable_object T>
void flush(M& m, const T& object) noexcept {
  m.flush(std::addressof(object), sizeof(T));
}

// Makes `object`, which lives in `m`, durable: flush + fence.
template <medium M, detail::flushable_object T>
void persist(M& m, const T& object) noexcept {
  flush(m, object);
  m.fence();
}

// Announces that the caller is about to read `object`.
template <medium M, detail::flushable_object T>
void annotate_read(M& m, const T& object) noexcept {
  m.annotate_read(std::addressof(object), sizeof(T));
}

// Announces that an operation of this thread begins on `m`, which is a medium or forwards to one. For callers that
// measure, and for background threads: media that charge for accesses do so between the two calls. No effect on other
// media.
template <declares_its_parts M>
void begin_operation(M& m) {
  if constexpr (M::parts.operations) m.begin_operation();
}
// Announces its end: waits out the time that the thread still owes to the device.
template <declares_its_parts M>
void end_operation(M& m) {
  if constexpr (M::parts.operations) m.end_operation();
}

// True if flushed and fenced stores in `m` survive the process.
template <medium M>
[[nodiscard]] constexpr bool is_durable(const M& m) noexcept {
  if constexpr (M::parts.varying_durability)
    return m.is_durable();
  else
    return M::durable;
}

// Prefetches bytes that the caller will read soon, while it continues. Media that count or charge reads are informed.
template <medium M>
void prefetch(M& m, const void* start, std::size_t bytes) noexcept {
  if constexpr (M::parts.prefetches) m.prefetch(start, bytes);
  for_each_line(start, bytes, [](std::uintptr_t line) { __builtin_prefetch(reinterpret_cast<const void*>(line)); });
}
// The same for an object that lives in `m`.
template <medium M, detail::flushable_object T>
void prefetch(M& m, const T& object) noexcept {
  prefetch(m, std::addressof(object), sizeof(T));
}

// True if `p` can name `bytes` bytes of T in `m`: not null, aligned, and inside the medium as far as the medium knows
// its bounds (`pointer_bound()`, one past the greatest word). For code that follows possibly corrupt pointers.
template <medium M, class T>
[[nodiscard]] bool can_name(const M& m, pointer<T> p, std::uint64_t bytes = sizeof(T)) noexcept {
  if (!p || p.word() % alignof(T) != 0) return false;
  if constexpr (M::parts.pointer_bound)
    return p.word() < m.pointer_bound() && bytes <= m.pointer_bound() - p.word();
  else
    return true;
}

// Publishes `target := value` with the other changes of `change`. `target` is an 8-byte atomic that lives in the
// medium. Other stores to its line are not part of it: a crash may lose them and keep the word.
template <publication P, class T>
requires(sizeof(T) == 8 && std::is_trivially_copyable_v<T>) void publish_store(P& change, std::atomic<T>& target,
                                                                               T value) {
  static_assert(sizeof(std::atomic<T>) == 8);
  std::uint64_t word;
  __builtin_memcpy(&word, &value, sizeof word);
  change.store(reinterpret_cast<std::atomic<std::uint64_t>&>(target), word);
}

// Allocates and constructs a T as part of `change`. Returns nullptr if the medium is full. The caller persists it.
template <class T, publication P, class... Arguments>
[[nodiscard]] T* create(P& change, Arguments&&... arguments) {
  void* const block = change.allocate(sizeof(T), alignof(T));
  return block == nullptr ? nullptr : ::new (block) T(std::forward<Arguments>(arguments)...);
}

}  // namespace pmlab::media
