// A store under measurement beside its operations: its state, and its figures. Both kinds of subjects have it.
#pragma once

#include <pmlab/media/counts.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

// A figure that only this store has, for results: ("merges", 12).
using store_statistic = std::pair<std::string, std::uint64_t>;

class store_subject {
 public:
  store_subject() = default;
  store_subject(const store_subject&) = delete;
  store_subject& operator=(const store_subject&) = delete;
  virtual ~store_subject() = default;

  // Does, or waits for, all work that operations have left for later. No operation is under way, and no queue exists.
  virtual void settle() {}

  // For the phase `open`. Closes the store, and opens it again so far that it can be read; no queue exists.
  [[nodiscard]] virtual bool can_reopen() const { return false; }
  virtual void close() {}
  virtual void open() {}
  // Returns when all is rebuilt that opening left for later. False: this store leaves nothing.
  [[nodiscard]] virtual bool wait_until_complete() { return false; }

  // Counts since the subject was made.
  [[nodiscard]] virtual std::vector<store_statistic> statistics() { return {}; }
  // CPU time that is not the host's: of threads or calls that stand for a device, with what these wait for modelled
  // drives. Since the subject was made.
  [[nodiscard]] virtual std::uint64_t device_cpu_ns() { return 0; }
  // Bytes that left the host for each device's sake, where the device's commands carry pairs, not blocks (a key-value
  // SSD); nothing: what the drives count is the host's.
  [[nodiscard]] virtual std::optional<std::uint64_t> host_bytes() { return std::nullopt; }
  // False: it writes to a file of its own, and the counts of the drives are not its own.
  [[nodiscard]] virtual bool writes_to_drives() const { return true; }
  // The counts of a medium that counts, since the last reset; std::nullopt: it does not count.
  [[nodiscard]] virtual std::optional<media::counts> counts() { return std::nullopt; }
  virtual void reset_counts() {}
  // About its figures: "the medium is emulated and was late".
  [[nodiscard]] virtual std::vector<std::string> remarks() { return {}; }
};

}  // namespace pmlab::store_bench
