// The distribution of a workload's accesses over the records.
#pragma once

#include <pmlab/base/random.hpp>
#include "bench/workload/permutation.hpp"
#include "bench/workload/zipfian.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::workload {

enum class distribution_kind : std::uint8_t {
  uniform,       // every record alike
  zipfian,       // the k-th most popular record with probability in proportion to 1 / k^parameter, scattered
  latest,        // Zipf's law by age: the youngest record is the most popular one (parameter: 0.99)
  sequential,    // one record after the other, round and round
  self_similar,  // a share `parameter` of the records gets 1 - parameter of the requests, and so on inside; scattered
};

struct distribution {
  distribution_kind kind = distribution_kind::uniform;
  double parameter = 0;
  // As parse_distribution reads it: "zipfian:0.99".
  [[nodiscard]] std::string name() const;
  friend bool operator==(const distribution&, const distribution&) = default;
};

// Reads "uniform", "zipfian[:THETA]" (0 to 10; 0.99 if not given), "latest[:THETA]", "sequential" or
// "self-similar[:SHARE]" (more than 0, up to 0.5; 0.2 if not given). Throws pmlab::error for anything else.
[[nodiscard]] distribution parse_distribution(std::string_view text);

// The forms that parse_distribution accepts, for lists and help texts.
[[nodiscard]] std::span<const std::string_view> distribution_names() noexcept;

// Draws the indexes of records for one thread.
//
// The number of records may grow between draws (inserts). Draws are exact for any number of records: probabilities are
// those of the definition within the rounding of doubles, not those of an approximation. Not thread-safe.
class sampler {
 public:
  // `capacity`: how many records there can ever be, at least 1. `start`: where "sequential" begins.
  sampler(const distribution& shape, std::uint64_t capacity, std::uint64_t start = 0) noexcept;

  // An index below `records`, which is at least 1 and never shrinks. Where the distribution is scattered, the
  // popularity of all `capacity` records is settled from the start, and a record that is not there yet is drawn again
  // (as the official YCSB does): a record does not become more or less popular because others arrive. Only where most
  // of the records are missing, so that 64 draws in a row are in vain, is the last one folded into those that exist.
  std::uint64_t operator()(random_source& random, std::uint64_t records) noexcept;

 private:
  // The rank of a record by popularity: zipfian and self-similar.
  std::uint64_t rank(random_source& random) const noexcept;

  distribution shape_;
  permutation scatter_;
  zipfian_ranks ranks_;
  std::uint64_t ranked_;    // how many ranks ranks_ has
  std::uint64_t next_;      // sequential: the next index
  double self_similarity_;  // self-similar: log(h) / log(1 - h)
};

}  // namespace pmlab::workload
