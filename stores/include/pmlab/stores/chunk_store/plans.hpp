// What an operation on a chunk knows between its beginning and its end, for the parts of a store that begin and end it.
#pragma once

#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/limbo.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// The results of the steps of operations; chunk_store lists their meanings.
inline constexpr std::errc volume_removed = std::errc::identifier_removed;
inline constexpr std::errc no_room = std::errc::resource_unavailable_try_again;
inline constexpr std::errc not_durable_yet = std::errc::operation_in_progress;
inline constexpr std::errc write_again = std::errc::operation_canceled;
inline constexpr std::errc damaged_record = std::errc::bad_message;

// Names a volume of an open store.
struct volume_number {
  std::uint32_t id = 0;          // its number, from 1
  std::uint64_t generation = 0;  // which of the volumes that had this number since the store was opened
};

// An operation on blocks of one chunk, between its plan and its end.
class plan {
 public:
  plan() = default;
  // Where its blocks are on the drive; target `hole`: no transfer, the data is zeros.
  [[nodiscard]] std::span<const placed> transfers() const noexcept { return parts_; }
  // True: no transfer, the data is zeros.
  [[nodiscard]] static bool is_zeros(const placed& p) noexcept { return p.target == hole; }
  // The key of its chunk.
  [[nodiscard]] std::uint64_t key() const noexcept { return key_; }
  // The error of a read that has not begun: its record cannot be read, or there is no DRAM.
  [[nodiscard]] std::errc failure() const noexcept { return failure_; }
  // When it has ended: a merge by copy of its chunk is to begin.
  [[nodiscard]] bool wants_merge() const noexcept { return wants_merge_; }

 private:
  template <class>
  friend class reads;
  template <class>
  friend class writes;
  template <class>
  friend class discards;
  template <class>
  friend class commits;
  plan(volume_number of, std::uint64_t number) : key_(name_chunk(of.id, number)), of_(of) {}
  enum class way : std::uint8_t { read, in_place, first, redirected };
  // To places that a merge by copy may read or write at the same time.
  [[nodiscard]] bool is_direct() const noexcept { return way_ == way::in_place || way_ == way::first; }
  // So many extents can be put to its stripe, until release.
  void promise(stripe& s, std::uint32_t extents) {
    s.gone.promise(extents);
    promised_ = extents;
  }
  void release(stripe& s) noexcept { s.gone.release(std::exchange(promised_, 0)); }

  std::uint64_t key_ = 0;
  volume_number of_;
  range blocks_;
  way way_ = way::read;
  bool wants_merge_ = false;
  std::errc failure_{};
  limbo::generation generation_ = 0;
  reader_epochs::epoch epoch_ = 0;  // a read has one
  std::vector<placed> parts_;
  index_change change_;           // the index has it, if
  bool is_committed_ = false;     // this is so
  std::vector<extent> replaced_;  // when it is durable
  std::uint32_t promised_ = 0;    // extents that its stripe may be given
};

// A merge by copy, between its beginning and its end.
class merge_plan {
 public:
  // The blocks whose data is elsewhere, in the order of the chunk, and where it is.
  [[nodiscard]] std::span<const placed> sources() const noexcept { return sources_; }
  // Where the data of a block is to go.
  [[nodiscard]] std::uint64_t target_of(std::uint32_t block) const noexcept { return std::uint64_t{base_} + block; }
  // Why a merge that has ended, and whose data was at its targets, is not there; std::errc{}: it is, or the chunk
  // changed.
  [[nodiscard]] std::errc failure() const noexcept { return failure_; }

 private:
  template <class>
  friend class merge_steps;
  template <class>
  friend class commits;
  void release(stripe& s) noexcept { s.gone.release(std::exchange(promised_, 0)); }

  std::uint64_t key_ = 0;
  std::uint64_t id_ = 0;
  std::uint32_t base_ = no_block;
  std::uint32_t entries_ = 0;  // oldest ones of the ring
  places before_{};            // where all blocks were
  std::vector<placed> sources_;
  limbo::generation generation_ = 0;
  reader_epochs::epoch epoch_ = 0;
  index_change change_;  // as of a plan
  bool is_committed_ = false;
  std::errc failure_{};
  std::uint32_t promised_ = 0;  // as of a plan
};

}  // namespace pmlab::stores::detail::chunk_store
