// The subject of a measurement: an index on its medium, or a third-party container, behind one interface.
#pragma once

#include <pmlab/erased/any_index.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counts.hpp>
#include "bench/catalogue/layer_statistics.hpp"
#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/workload/latency_histogram.hpp"
#include "bench/workload/operation.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace pmlab::bench {

// The result of one operation.
struct answer {
  std::uint64_t value = 0;                             // read, read-modify-write: the value found
  std::uint32_t entries = 0;                           // scan: how many entries came
  indexes::outcome result = indexes::outcome::absent;  // insert, update, erase, read-modify-write
  bool found = false;                                  // read, read-modify-write
};

// A run of operations for one thread.
class pacer;

struct work {
  std::span<const workload::operation> operations{};
  // Empty, or as many as operations: where the results are stored for a check.
  std::span<answer> answers{};
  // Where scans put their entries, each over those of the last one: room for the longest.
  std::span<indexes::entry> scanned{};
  // With `answers`: where they are kept for the check, one scan after the other; room for all their lengths.
  std::span<indexes::entry> kept{};
  // Null, or the histogram for the time of every `latency_period`th operation.
  workload::latency_histogram* latencies = nullptr;
  std::uint64_t latency_period = 16;  // a power of two
  std::uint32_t batch = 1;            // > 1: reads that follow each other go to find_batch, this many at a time
  // Null: each operation begins when the one before has ended. Otherwise it begins when the pacer lets it, `latencies`
  // is not null, every operation has its time taken, and `batch` is 1. On a real clock.
  pacer* pace = nullptr;
};

struct work_done {
  std::uint64_t executed = 0;
  std::uint64_t positive = 0;  // answers other than "absent", "exists" and "no space"
  bool full = false;           // stopped before operation `executed`: the medium has no space
};

// Bytes held at one moment, and by how many entries.
struct space_used {
  std::uint64_t entries = 0;
  std::uint64_t pm_bytes = 0;
  std::uint64_t dram_bytes = 0;
};

// Lines flushed and fences since the last reset, of a medium that counts or is simulated; those of publications are not
// among them.
struct persist_sums {
  std::uint64_t flushes = 0;
  std::uint64_t fences = 0;

  static constexpr std::array counters{counter{&persist_sums::flushes, "flushes"},
                                       counter{&persist_sums::fences, "fences"}};

  persist_sums& operator+=(const persist_sums& more) noexcept { return add_counters(*this, more); }
};

// Bytes of whole granules that the media of the device moved since the last reset, however little of a granule was
// used. A device model counts as its media did. A medium that counts without a model gives an upper bound, for a device
// that has no buffer and a CPU that has no caches: the granules that an operation read, each once for each operation,
// and the granules that it flushed or copied to, each once between two fences.
struct media_sums {
  std::uint64_t granule_bytes = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;

  static constexpr std::array counters{counter{&media_sums::bytes_read, "read"},
                                       counter{&media_sums::bytes_written, "written"}};

  media_sums& operator+=(const media_sums& more) noexcept {
    granule_bytes = more.granule_bytes;
    return add_counters(*this, more);
  }
};

class subject {
 public:
  subject() = default;
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;
  virtual ~subject() = default;

  // Where the entries really are, as a user would name it.
  [[nodiscard]] virtual std::string medium() const = 0;
  // True if the entries outlive the object: `reopen` may be called.
  [[nodiscard]] virtual bool durable() const = 0;

  // Executes the operations in order. Any number of threads may each be in a call.
  virtual work_done run(const work& w) = 0;

  // Walks the index. REQUIRES, like the rest of this interface: no concurrent call.
  [[nodiscard]] virtual space_used space() = 0;
  // Sums since the last reset. Nothing, unless the medium counts.
  [[nodiscard]] virtual std::optional<media::counts> accesses() = 0;
  virtual void reset_accesses() = 0;
  // Since the last reset of `accesses`; nothing, unless the medium counts or is simulated.
  [[nodiscard]] virtual std::optional<persist_sums> persists() {
    const std::optional<media::counts> sums = accesses();
    return sums ? std::optional(persist_sums{sums->lines_flushed, sums->fences}) : std::nullopt;
  }
  // The bytes since the last reset of `accesses`, and since `reopen`, unless simulated. std::nullopt: the medium does
  // not count and has no device model, or it counts and leaves flushes out: then lines leave the caches unseen.
  [[nodiscard]] virtual std::optional<media_sums> media_bytes() { return std::nullopt; }
  // What the platform of its medium saves. std::nullopt: it lives in DRAM, or its own library decides.
  [[nodiscard]] virtual std::optional<media::persistence_domain> persistence() const { return std::nullopt; }
  // The sums of an emulated medium since it was opened. std::nullopt: it is not emulated.
  [[nodiscard]] virtual std::optional<media::emulation_counts> emulation() { return std::nullopt; }
  // The index for a layer in front of it; until `reopen`. Null: it supports none.
  [[nodiscard]] virtual erased::any_index* index() { return nullptr; }
  // The statistics of its layer since the index was opened.
  [[nodiscard]] virtual layer_statistics layer() { return {}; }
  // Closes the index and its medium, and opens them again.
  virtual void reopen() = 0;
};

// The setup of a subject.
struct subject_setup {
  medium_spec medium;                                   // path: this subject's own pool
  std::uint64_t pool_bytes = 0;                         // size of a pool to be made; 0: it exists
  std::shared_ptr<const media::calibration> emulation;  // calibration of an emulated medium
  bool huge_pages = true;
  std::uint64_t records = 0;  // entries that will be loaded
  unsigned threads = 1;       // how many will call `run` at a time, at most
};

}  // namespace pmlab::bench
