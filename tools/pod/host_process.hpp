// The processes of a round: the one that makes the index, the hosts, and the one that opens what they leave.
#pragma once

#include "tools/pod/operation_log.hpp"
#include "tools/pod/options.hpp"
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::pods {

// The names of the indexes that hosts share.
[[nodiscard]] const std::vector<std::string>& shared_indexes();

// What a host that has just joined finds.
struct found_state {
  std::vector<indexes::entry> entries;  // ascending
  std::string violation;                // the first violated invariant, or a lost block; "": none
};

// When a host is killed: so long after it has begun an operation, or so many moments of its lines (dying_lines.hpp),
// wherever it is then.
struct kill_time {
  std::uint64_t operation = ~std::uint64_t{0};  // none: it is not
  bool at_joining = false;                      // before it joins for the stay that begins with the operation
  std::uint64_t nanoseconds = 0;
  std::uint64_t moments = 0;  // 0: nanoseconds decide
};

// One round's memory and index. Thread safety: none; each process has its own.
class round_of_hosts {
 public:
  virtual ~round_of_hosts() = default;
  // Makes the file and the index, with these entries. Throws pmlab::error.
  virtual void make(const std::vector<indexes::entry>& entries) = 0;
  // Joins, waits until all may begin, and does its operations, in as many stays as the options have: it leaves, and
  // joins again. Returns when all are done.
  virtual void be_host(std::size_t process, const std::vector<std::uint64_t>& keys, const kill_time& when,
                       operation_log& log) = 0;
  // Joins, and looks at all. `alone`: as behind a power failure. Throws pmlab::error.
  [[nodiscard]] virtual found_state look(bool alone) = 0;

 protected:
  round_of_hosts() = default;
  round_of_hosts(const round_of_hosts&) = default;
  round_of_hosts& operator=(const round_of_hosts&) = default;
};

// `path`: of the file. REQUIRES: the index is one of shared_indexes().
[[nodiscard]] std::unique_ptr<round_of_hosts> make_round(const run_options& o, std::uint64_t seed, std::string path);

}  // namespace pmlab::pods
