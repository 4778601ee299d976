// The volume that most toys on drives are: a map in memory leads to blocks of a drive, and a write goes to free blocks.
//
// It is correct without `Flaw`: data, then the map. One word is the map of a chunk, so one store commits a write. The
// free blocks are known in DRAM only, and found again when the volume is opened. One lock for all.
#pragma once

#include "checker/verify/volume.hpp"
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// 0: the toy is correct. Read from PMLAB_MUTATION (mutations/selected.cpp).
extern "C" const int pmlab_mutation;

namespace pmlab::toys {

[[nodiscard]] inline bool has_defect() noexcept { return pmlab_mutation != 0; }

enum class flaw : std::uint8_t {
  commit_before_data,       // the map leads to blocks that are not written yet
  acknowledge_early,        // the data lie in the drive's volatile cache when the write is acknowledged
  flush_before_completion,  // the flush is submitted together with the writes that it is to cover
  early_reuse,              // blocks are used again before the map that no longer leads to them is durable
  torn_block,               // a block is overwritten in place on a drive that keeps only 512 bytes whole
  overlapping_writes,       // two writes of one block in flight: the later one is expected to win
  discard_reads_zero,       // a discarded block is expected to read as zeros
};

[[nodiscard]] constexpr std::string_view name_of(flaw f) noexcept {
  switch (f) {
    case flaw::commit_before_data: return "commit_before_data";
    case flaw::acknowledge_early: return "acknowledge_early";
    case flaw::flush_before_completion: return "flush_before_completion";
    case flaw::early_reuse: return "early_reuse";
    case flaw::torn_block: return "torn_block";
    case flaw::overlapping_writes: return "overlapping_writes";
    case flaw::discard_reads_zero: return "discard_reads_zero";
  }
  return "?";
}

template <media::medium Medium, blocks::device Drive, flaw Flaw>
class redirecting_volume {
 public:
  static constexpr std::string_view layout_name = name_of(Flaw);
  static constexpr std::uint32_t block_bytes = Flaw == flaw::torn_block ? 4096 : 512;
  static constexpr verify::volume_shape shape{
      .block_bytes = block_bytes, .blocks = 12, .chunk_blocks = 4, .discards = Flaw == flaw::discard_reads_zero};
  static constexpr blocks::geometry drive{.blocks = 24, .block_bytes = block_bytes, .atomic_bytes = 0};

  redirecting_volume(Medium& medium, Drive& on)
      : medium_(medium), drive_(on), maps_(maps_of(medium)), staged_(most_blocks * blocks::data_alignment) {
    std::array<bool, drive.blocks> used{};
    for (const word& m : maps_.of_chunk)
      for (std::uint32_t place = 0; place < shape.chunk_blocks; ++place)
        if (const std::uint64_t b = block_at(m.load(std::memory_order_acquire), place); b != nothing) used[b] = true;
    for (std::uint64_t b = drive.blocks; b > 0; --b)
      if (!used[b - 1]) free_.push_back(b - 1);
  }

  bool write(std::uint64_t first, std::span<const std::byte> data) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint64_t> replaced;
    std::vector<word*> changed;
    for (std::uint64_t done = 0, count = data.size() / block_bytes; done < count;) {
      const std::uint64_t b = first + done;
      const std::uint64_t here = std::min<std::uint64_t>(count - done, shape.chunk_blocks - b % shape.chunk_blocks);
      write_in_chunk(b, data.subspan(done * block_bytes, here * block_bytes), replaced, changed);
      done += here;
      if (is_flawed(flaw::early_reuse)) recycle(replaced);
    }
    if (is_flawed(flaw::early_reuse))
      for (word* const m : changed) media::persist(medium_, *m);
    recycle(replaced);
    return true;
  }

  void read(std::uint64_t first, std::span<std::byte> data) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t count = data.size() / block_bytes;
    std::vector<blocks::request> requests;
    for (std::uint64_t i = 0; i < count; ++i)
      if (const std::uint64_t b = mapped(first + i); b != nothing)
        requests.push_back({.what = blocks::operation::read, .first = b, .data = staged(i), .tag = i});
    perform(requests);
    for (std::uint64_t i = 0; i < count; ++i)
      if (mapped(first + i) == nothing) std::memset(staged(i), 0, block_bytes);
    for (std::uint64_t i = 0; i < count; ++i) std::memcpy(data.data() + i * block_bytes, staged(i), block_bytes);
  }

  bool discard(verify::block_range range) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint64_t> unused;
    for (std::uint64_t b = range.first; b < range.first + range.count; ++b)
      if (mapped(b) != nothing) unused.push_back(mapped(b));
    if (!is_flawed(flaw::discard_reads_zero)) {
      const std::uint64_t end = range.first + range.count;
      for (std::uint64_t b = range.first; b < end;) {
        word& map = map_of(b);
        std::uint64_t next = map.load(std::memory_order_relaxed);
        for (; b < end && &map_of(b) == &map; ++b) next = with_block(next, place_of(b), nothing);
        commit(map, next);
      }
    }
    std::vector<blocks::request> requests;
    for (const std::uint64_t b : unused) requests.push_back({.what = blocks::operation::discard, .first = b});
    perform(requests);
    if (is_flawed(flaw::discard_reads_zero))
      flush();
    else
      recycle(unused);
    return true;
  }

  [[nodiscard]] std::string check() const {
    std::array<bool, drive.blocks> used{};
    for (const word& m : maps_.of_chunk)
      for (std::uint32_t place = 0; place < shape.chunk_blocks; ++place) {
        const std::uint64_t b = block_at(m.load(std::memory_order_acquire), place);
        if (b == nothing) continue;
        if (b >= drive.blocks || used[b]) return "block " + std::to_string(b) + " of the drive has two owners";
        used[b] = true;
      }
    return {};
  }
  [[nodiscard]] std::uint64_t held_bytes() const noexcept { return sizeof(maps); }

 private:
  using word = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t chunks = shape.blocks / shape.chunk_blocks;
  static constexpr std::uint64_t most_blocks = 2 * shape.chunk_blocks;
  static constexpr std::uint64_t nothing = ~std::uint64_t{0};
  static constexpr unsigned bits = 16;  // bits of a map's word, for each block: 0, or its number on the drive plus 1

  struct alignas(media::cache_line_bytes) maps {
    std::array<word, chunks> of_chunk{};
  };

  [[nodiscard]] static bool is_flawed(flaw f) noexcept { return f == Flaw && has_defect(); }

  static maps& maps_of(Medium& medium) {
    word& root = *medium.named_root(layout_name, layout_name, 1).word;
    if (root.load(std::memory_order_acquire) == 0) {
      typename Medium::publication change(medium);
      auto* const made = media::create<maps>(change);
      media::persist(medium, *made);
      change.store(root, medium.locate(made).word());
      change.commit();
    }
    return *medium.resolve(media::pointer<maps>(root.load(std::memory_order_acquire)));
  }

  [[nodiscard]] static std::uint64_t block_at(std::uint64_t map, std::uint64_t place) noexcept {
    return (map >> (place * bits) & 0xffff) - 1;
  }
  [[nodiscard]] static std::uint64_t with_block(std::uint64_t map, std::uint64_t place, std::uint64_t block) noexcept {
    return (map & ~(std::uint64_t{0xffff} << (place * bits))) | (block + 1) << (place * bits);
  }
  [[nodiscard]] static std::uint64_t place_of(std::uint64_t b) noexcept { return b % shape.chunk_blocks; }
  [[nodiscard]] word& map_of(std::uint64_t b) noexcept { return maps_.of_chunk[b / shape.chunk_blocks]; }
  [[nodiscard]] std::uint64_t mapped(std::uint64_t b) noexcept {
    return block_at(map_of(b).load(std::memory_order_acquire), place_of(b));
  }
  [[nodiscard]] std::byte* staged(std::uint64_t place) noexcept {
    return staged_.data() + place * blocks::data_alignment;
  }

  void perform(std::span<const blocks::request> requests) {
    if (requests.empty()) return;
    typename Drive::queue queue(drive_, static_cast<unsigned>(requests.size()));
    static_cast<void>(queue.submit(requests));
    std::array<blocks::completion, 4 * most_blocks> done;
    while (queue.in_flight() != 0) static_cast<void>(queue.reap(done, requests.size()));
  }
  void flush() {
    const blocks::request r{.what = blocks::operation::flush};
    perform({&r, 1});
  }
  void recycle(std::vector<std::uint64_t>& unused) {
    free_.insert(free_.end(), unused.begin(), unused.end());
    unused.clear();
  }

  // (V1) the data, (V2) the drive's flush, (V3) the map, (V4) old blocks are free
  // (V1) < (V2): the write has completed, and the flush covers it.
  // (V2) < (V3): the flush has completed before the store.
  // (V3) < (V4): the map's line has been flushed and fenced.
  void write_in_chunk(std::uint64_t first, std::span<const std::byte> data, std::vector<std::uint64_t>& replaced,
                      std::vector<word*>& changed) {
    const std::uint64_t count = data.size() / block_bytes;
    word& map = map_of(first);
    std::uint64_t next = map.load(std::memory_order_relaxed);
    const bool whole = drive_.shape().atomic_bytes >= block_bytes;
    const bool in_place = Flaw == flaw::torn_block && count == 1 && mapped(first) != nothing && (whole || has_defect());
    std::vector<blocks::request> requests;
    std::vector<std::uint64_t> old;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t b = mapped(first + i);
      if (!in_place) {
        if (b != nothing) old.push_back(b);
        b = free_.back();
        free_.pop_back();
        next = with_block(next, place_of(first + i), b);
      }
      std::memcpy(staged(i), data.data() + i * block_bytes, block_bytes);
      if (is_flawed(flaw::overlapping_writes)) {
        zeros_ = blocks::buffer(blocks::data_alignment);
        requests.push_back({.what = blocks::operation::write, .first = b, .data = zeros_.data()});
      }
      requests.push_back({.what = blocks::operation::write, .first = b, .data = staged(i)});
    }
    if (is_flawed(flaw::flush_before_completion)) requests.push_back({.what = blocks::operation::flush});
    if (is_flawed(flaw::commit_before_data)) commit(map, next);
    perform(requests);                                                                              // (V1)
    if (!is_flawed(flaw::acknowledge_early) && !is_flawed(flaw::flush_before_completion)) flush();  // (V2)
    if (is_flawed(flaw::early_reuse)) {
      map.store(next, std::memory_order_release);
      changed.push_back(&map);
    } else if (!in_place && !is_flawed(flaw::commit_before_data)) {
      commit(map, next);  // (V3)
    }
    replaced.insert(replaced.end(), old.begin(), old.end());  // (V4)
  }

  void commit(word& map, std::uint64_t next) {
    map.store(next, std::memory_order_release);
    media::persist(medium_, map);
  }

  Medium& medium_;
  Drive& drive_;
  maps& maps_;
  blocks::buffer staged_;
  blocks::buffer zeros_;
  std::vector<std::uint64_t> free_;
  std::mutex mutex_;
};

}  // namespace pmlab::toys
