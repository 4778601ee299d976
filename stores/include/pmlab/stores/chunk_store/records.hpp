// The records of all chunks: slabs of them on persistent memory, and the free ones in DRAM.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Orders:
//   (E1) key and map are 0, one publication        (E2) the other words are 0, durable, before the record is used again
//   (E1) < (E2): a record with a key is whole.
// Thread safety: take and give from any thread; the others while no thread does.
template <media::medium Medium>
class records {
 public:
  records(Medium& medium, word& slabs, const chunk_shape& shape) : medium_(medium), slabs_(slabs), shape_(shape) {}

  // False: a slab has another size than each has, is beyond the medium or on another one; or the list of them has no
  // end.
  [[nodiscard]] bool are_possible() const {
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // beginning and end of each
    for (std::uint64_t at = slabs_.load(std::memory_order_acquire); at != 0;) {
      const media::pointer<slab> p(at);
      if (!media::can_name(medium_, p)) return false;
      const slab& s = *medium_.resolve(p);
      const std::uint64_t count = s.count.load(std::memory_order_acquire);
      if ((count != few && count != usual_count()) || !media::can_name(medium_, p, slab_bytes(count))) return false;
      const auto [place, is_new] = seen.emplace(at, at + slab_bytes(count));
      if (!is_new || (place != seen.begin() && std::prev(place)->second > place->first) ||
          (std::next(place) != seen.end() && std::next(place)->first < place->second))
        return false;
      at = s.next.load(std::memory_order_acquire);
    }
    return true;
  }

  // A record without a key and of zeros; nullptr: no space.
  [[nodiscard]] record* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty() && !add_slab()) return nullptr;
    record* const r = free_.back();
    free_.pop_back();
    return r;
  }
  // REQUIRES: all words of `r` are zeros, durably.
  void give(record& r) noexcept {
    const std::scoped_lock lock(mutex_);
    free_.push_back(&r);
  }

  // As `give`, of many; `known`: how many there are besides, each of which may be given later. Throws std::bad_alloc.
  void give_all(std::span<record* const> all, std::size_t known) {
    const std::scoped_lock lock(mutex_);
    free_.reserve(known_ + all.size() + known);
    free_.insert(free_.end(), all.begin(), all.end());
    known_ += all.size() + known;
  }
  // Undoes all of give_all.
  void forget_all() noexcept {
    const std::scoped_lock lock(mutex_);
    free_.clear();
    known_ = 0;
  }

  // Takes its name from a record, and its map; then it is all zeros, durably.
  void erase(record& r) {
    typename Medium::publication change(medium_);
    if (map_entry* const map = chunk<Medium>(medium_, shape_, r).block_map())
      change.release(map, map_bytes(shape_.blocks));
    media::publish_store(change, r.key, std::uint64_t{0});  // (E1)
    media::publish_store(change, r.map, std::uint64_t{0});
    change.commit();
    clear(r);
  }

  // Makes a record without a key all zeros, durably. (E2)
  void clear(record& r) {
    bool any = r.head.load(std::memory_order_relaxed) != 0;
    for (const word& w : r.written) any |= w.load(std::memory_order_relaxed) != 0;
    for (std::uint32_t i = 0; i < shape_.ring; ++i) any |= r.ring()[i].load(std::memory_order_relaxed) != 0;
    if (!any) return;
    r.head.store(0, std::memory_order_relaxed);
    for (word& w : r.written) w.store(0, std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < shape_.ring; ++i) r.ring()[i].store(0, std::memory_order_relaxed);
    medium_.flush(&r, record_bytes(shape_.ring));
    medium_.fence();
  }

  // Calls visit(record&) for every record, free ones too.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for_each_slab([&](slab& s) {
      const std::uint64_t count = s.count.load(std::memory_order_acquire);
      for (std::uint64_t i = 0; i < count; ++i) visit(*s.at(i, shape_.ring));
    });
  }
  [[nodiscard]] std::vector<slab*> slabs() const {
    std::vector<slab*> all;
    for_each_slab([&](slab& s) { all.push_back(&s); });
    return all;
  }
  // Calls visit(record&) for every record of a slab, which is read as a whole.
  template <class Visit>
  void for_each_in(slab& s, Visit&& visit) const {
    const std::uint64_t count = s.count.load(std::memory_order_acquire);
    medium_.annotate_read(&s, slab_bytes(count));
    for (std::uint64_t i = 0; i < count; ++i) visit(*s.at(i, shape_.ring));
  }
  // Bytes of all slabs.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for_each_slab([&](slab& s) { sum += slab_bytes(s.count.load(std::memory_order_acquire)); });
    return sum;
  }
  // True if `r` is the address of a record of this store: for words of the index, which is a hint.
  [[nodiscard]] static bool can_be(std::uint64_t place) noexcept {
    return place != 0 && place % media::cache_line_bytes == 0;
  }

 private:
  // Records of a slab: all stores so far have one of the two.
  static constexpr std::uint64_t few = 4;
  [[nodiscard]] std::uint64_t usual_count() const noexcept {
    constexpr std::uint64_t usual_bytes = std::uint64_t{64} << 10;
    return (usual_bytes - sizeof(slab)) / record_bytes(shape_.ring);
  }
  [[nodiscard]] std::uint64_t slab_bytes(std::uint64_t count) const noexcept {
    return sizeof(slab) + count * record_bytes(shape_.ring);
  }

  template <class Visit>
  void for_each_slab(Visit&& visit) const {
    for (std::uint64_t at = slabs_.load(std::memory_order_acquire); at != 0;) {
      slab* const s = medium_.resolve(media::pointer<slab>(at));
      visit(*s);
      at = s->next.load(std::memory_order_acquire);
    }
  }

  // Adds a slab. REQUIRES: the lock is held.
  [[nodiscard]] bool add_slab() {
    const std::uint64_t count = media::sizes_on<Medium>.small_slabs ? few : usual_count();
    const std::uint64_t bytes = slab_bytes(count);
    // Giving a record back must not fail.
    free_.reserve(known_ + count);
    typename Medium::publication change(medium_);
    auto* const made = static_cast<slab*>(change.allocate(bytes, media::cache_line_bytes));
    if (made == nullptr) return false;
    std::memset(static_cast<void*>(made), 0, bytes);
    made->next.store(slabs_.load(std::memory_order_acquire), std::memory_order_relaxed);
    made->count.store(count, std::memory_order_relaxed);
    medium_.flush(made, bytes);
    medium_.fence();
    media::publish_store(change, slabs_, medium_.locate(made).word());
    change.commit();
    known_ += count;
    for (std::uint64_t i = count; i > 0; --i) free_.push_back(made->at(i - 1, shape_.ring));
    return true;
  }

  Medium& medium_;
  word& slabs_;
  chunk_shape shape_;
  std::mutex mutex_;
  std::vector<record*> free_;  // has memory for all that are known
  std::size_t known_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
