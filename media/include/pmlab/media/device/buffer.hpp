// The read and write-combining buffer of one DIMM: the granules used most recently.
#pragma once

#include <pmlab/base/hash.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::media {

// A granule in the buffer. One bit per line of the granule in the masks.
struct buffered_granule {
  std::uint64_t granule = 0;
  std::uint64_t ready = 0;    // when the media read that brought it is done; 0: none did
  std::uint64_t valid = 0;    // lines whose contents are here
  std::uint64_t written = 0;  // lines that were written since the media was read last
  bool dirty = false;         // the media has older contents
  bool settled = false;       // whether those who wait find it in the buffer is known
};

// Least recently used first out. All operations O(1): a hash table of chains over a list. Not thread-safe.
class granule_buffer {
 public:
  explicit granule_buffer(std::uint64_t capacity)
      : nodes_(capacity + 1), heads_(std::bit_ceil(2 * capacity), none), capacity_(static_cast<link>(capacity)) {
    nodes_[ends()].newer = nodes_[ends()].older = ends();
  }

  // The granule, moved to the fresh end; nullptr if it is not here.
  [[nodiscard]] buffered_granule* find(std::uint64_t granule) noexcept {
    for (link at = heads_[bucket_of(granule)]; at != none; at = nodes_[at].chain) {
      if (nodes_[at].value.granule != granule) continue;
      unlink(at);
      link_newest(at);
      return &nodes_[at].value;
    }
    return nullptr;
  }

  // Adds a granule that is not buffered. Sets `evicted_dirty` to whether the evicted one was dirty.
  [[nodiscard]] buffered_granule& insert(std::uint64_t granule, bool& evicted_dirty) noexcept {
    link at = used_;
    evicted_dirty = false;
    if (used_ < capacity_) {
      ++used_;
    } else {
      at = nodes_[ends()].newer;
      evicted_dirty = nodes_[at].value.dirty;
      unlink(at);
      unchain(at);
    }
    nodes_[at].value = buffered_granule{.granule = granule};
    nodes_[at].chain = heads_[bucket_of(granule)];
    heads_[bucket_of(granule)] = at;
    link_newest(at);
    return nodes_[at].value;
  }

 private:
  using link = std::uint32_t;
  static constexpr link none = ~link{0};

  struct node {
    buffered_granule value;
    link chain = none;
    link older = none;
    link newer = none;
  };

  // The ends of the list meet in the node after the last: its `newer` is the oldest granule, its `older` the newest.
  [[nodiscard]] link ends() const noexcept { return capacity_; }

  [[nodiscard]] std::size_t bucket_of(std::uint64_t granule) const noexcept {
    return ((granule * golden_ratio) >> 32) & (heads_.size() - 1);
  }

  void unlink(link at) noexcept {
    nodes_[nodes_[at].older].newer = nodes_[at].newer;
    nodes_[nodes_[at].newer].older = nodes_[at].older;
  }

  void link_newest(link at) noexcept {
    nodes_[at].older = nodes_[ends()].older;
    nodes_[at].newer = ends();
    nodes_[nodes_[at].older].newer = at;
    nodes_[ends()].older = at;
  }

  void unchain(link at) noexcept {
    link* from = &heads_[bucket_of(nodes_[at].value.granule)];
    while (*from != at) from = &nodes_[*from].chain;
    *from = nodes_[at].chain;
  }

  std::vector<node> nodes_;
  std::vector<link> heads_;
  link capacity_;
  link used_ = 0;
};

}  // namespace pmlab::media
