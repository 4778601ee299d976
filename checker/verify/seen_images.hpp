// A set of hashes of the images checked before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::verify {

class seen_images {
 public:
  void clear() {
    if (count_ == 0) return;
    slots_.assign(least, 0);
    count_ = 0;
  }

  // True if it was absent.
  bool insert(std::uint64_t hash) {
    if (hash == 0) hash = 1;
    if (2 * count_ >= slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == hash) return false;
    slots_[at] = hash;
    ++count_;
    return true;
  }

 private:
  static constexpr std::size_t least = 4096;

  void grow() {
    std::vector<std::uint64_t> old(2 * slots_.size(), 0);
    old.swap(slots_);
    count_ = 0;
    for (const std::uint64_t hash : old)
      if (hash != 0) insert(hash);
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(least, 0);
  std::size_t count_ = 0;
};

}  // namespace pmlab::verify
