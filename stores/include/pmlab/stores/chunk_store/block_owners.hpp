// The owner of each block of a drive, for the check of a store: one of them, or it is free.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Adds each violation to a report, which outlives it. Thread safety: none.
class block_owners {
 public:
  block_owners(std::uint64_t blocks, indexes::check_report& report) : report_(report), used_(blocks, false) {}

  // The first blocks of the drive are the store's.
  void reserve(std::uint64_t blocks) { std::fill_n(used_.begin(), blocks, true); }

  // A block that must have no other owner.
  void own(std::uint64_t block, const std::string& owner) {
    if (block >= used_.size())
      report_.add(owner + " has block " + std::to_string(block) + ", which the drive does not have");
    else if (used_[block])
      report_.add("block " + std::to_string(block) + " has two owners; one is " + owner);
    else
      used_[block] = true;
  }
  void own(const extent& e, const std::string& owner) {
    for (std::uint32_t i = 0; i < e.count; ++i) own(std::uint64_t{e.first} + i, owner);
  }
  // Blocks that may have another owner.
  void allow(const extent& e) { std::fill_n(used_.begin() + e.first, e.count, true); }

  // Each block has an owner by now.
  void end() {
    for (std::uint64_t b = 0; b < used_.size(); ++b)
      if (!used_[b]) report_.add("block " + std::to_string(b) + " has no owner and is not free");
  }

 private:
  indexes::check_report& report_;
  std::vector<bool> used_;
};

}  // namespace pmlab::stores::detail::chunk_store
