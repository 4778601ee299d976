// A block drive whose durable content the machine tracks: for every atomic unit the versions that a crash may leave.
//
//   current   the content that reads return
//   durable   the content that a crash leaves, if it loses all that it may lose
//   versions  per unit, the writes that may or may not survive: from their submission on (rule B1 of blocks/device.hpp)
//
// It is to blocks what persistent_memory is to lines: a crash keeps, of every unit independently of the others, the
// durable content and any prefix of the unit's versions. The order of effects, of completions, and of the units of one
// request is random, from the seed of the run (B3); so is the content of a discarded block (B4).
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/device.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::simulator {

class persistence_observer;

inline constexpr std::size_t sector_bytes = blocks::least_block_bytes;

// A request from its submission until it is durable, or cannot become so any more.
struct drive_request {
  blocks::request asked;               // its data are the program's
  const void* caller = nullptr;        // that submitted it
  std::vector<const void*> callers{};  // where states are explored: it, its caller, and so on
  std::uint64_t submitted = 0;         // numbers of the drive's events
  std::uint64_t completed = 0;         // 0: in flight
  unsigned kept_variant = 0;           // content after a discard: 0 the old content, 1 zeros, 2 garbage
  bool failed = false;
  // Bytes of a write, as submitted; of a discard zeros, then garbage; of a read the answer.
  std::vector<std::byte> data;
  std::vector<std::uint64_t> hashes;  // hashes of the data's sectors
};

// The content that one request gives to some sectors of a unit.
struct unit_version {
  std::shared_ptr<drive_request> of;
  std::uint64_t first = 0;  // sector of the drive
  std::uint32_t sectors = 0;
  std::size_t in_request = 0;  // place of its first sector among those of the request's data
  unsigned variant = 0;        // variant of a discard, see drive_request::kept_variant
  std::uint64_t effect = 0;    // the event at which it became the current content; 0: not yet
};

struct uncertain_unit {
  std::uint32_t position = 0;          // in the list of uncertain units
  std::vector<unit_version> versions;  // in the order of their effects; then those without one
};

class persistent_drive {
 public:
  // Submitted by one thread.
  struct queue {
    explicit queue(persistent_drive& drive) noexcept : of(drive) {}
    persistent_drive& of;
    std::vector<std::shared_ptr<drive_request>> in_flight;
    std::vector<blocks::completion> done;
    std::vector<std::uint64_t> refused;  // tags of those that were reaped, and whose error was not asked for
  };

  // All zeros, durably. `shape` is a possible one.
  explicit persistent_drive(const blocks::geometry& shape);
  persistent_drive(const persistent_drive&) = delete;
  persistent_drive& operator=(const persistent_drive&) = delete;

  [[nodiscard]] const blocks::geometry& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t sectors() const noexcept { return durable_effects_.size(); }

  void observe(persistence_observer* observer) noexcept { observer_ = observer; }
  // Decides orders and discarded contents from now on.
  void begin(std::uint64_t seed) noexcept { random_ = splitmix64(seed * 31 + 7); }

  // Called with a description of a misuse.
  std::function<void(const std::string&)> on_misuse;
  // Called when a read has written to memory of the program.
  std::function<void(void* data, std::size_t bytes, const void* caller)> on_read;

  // The request is possible.
  void submit(queue& q, const blocks::request& r, const void* caller);
  // Some requests in flight take effect, some complete.
  void progress();
  // Completes one request of the queue, which has one: any.
  void complete_one(queue& q);
  // Completes the request with this tag, which is in flight: for replays.
  void complete(queue& q, std::uint64_t tag);
  // The same with an error: of a write, each unit is old or new.
  void fail(queue& q, std::uint64_t tag);

  // ---- the states that a crash may leave ----

  [[nodiscard]] const std::vector<std::uint32_t>& uncertain() const noexcept { return uncertain_; }
  [[nodiscard]] const uncertain_unit& unit(std::uint32_t number) const noexcept { return units_[number]; }
  // A hash of the durable content: equal contents, equal hashes.
  [[nodiscard]] std::uint64_t durable_hash() const noexcept { return durable_hash_; }
  // The hash after the first `versions` of this unit have been applied.
  [[nodiscard]] std::uint64_t hash_with(std::uint64_t hash, std::uint32_t unit, std::size_t versions) const;
  // Where each sector's content after a crash is: of the i-th uncertain unit, choice[i] versions. `contents` has
  // sectors() places.
  void find_image(std::span<const std::byte*> contents, std::span<const std::uint32_t> choice) const;
  // The same, copied.
  void write_image(std::byte* target, std::span<const std::uint32_t> choice) const;

  // Nothing is in flight any more; the content is `image`, shape().bytes() long, all durable. Null: zeros.
  void restore(const std::byte* image);

 private:
  [[nodiscard]] std::size_t sectors_of_block() const noexcept { return shape_.block_bytes / sector_bytes; }
  [[nodiscard]] std::size_t sectors_of_unit() const noexcept { return shape_.unit_bytes() / sector_bytes; }
  [[nodiscard]] static const std::byte* content(const unit_version& v, std::size_t sector) noexcept {
    return v.of->data.data() + (v.in_request + sector) * sector_bytes;
  }
  [[nodiscard]] bool is_superseded(const unit_version& v, std::size_t sector) const noexcept {
    return v.of->completed != 0 && v.effect < durable_effects_[v.first + sector];
  }
  void capture(drive_request& r);
  void add_versions(const std::shared_ptr<drive_request>& r);
  void take_effect(std::uint32_t unit, std::size_t version);
  void take_effect(const drive_request& r);
  void answer(drive_request& r);
  void complete(const std::shared_ptr<drive_request>& r);
  void make_durable(const drive_request& r);
  bool make_durable_before(std::uint64_t event);
  void store_durably(const unit_version& v);
  void drop(std::uint32_t unit, const std::function<bool(const unit_version&)>& which);
  template <class Work>
  void for_each_unit(const drive_request& r, Work&& work) const;

  blocks::geometry shape_;
  std::vector<std::byte> current_;
  std::vector<std::byte> durable_;
  std::vector<std::uint64_t> durable_hashes_;   // durable hashes of sectors
  std::vector<std::uint64_t> durable_effects_;  // effects of sectors, in the version that is durable
  std::vector<uncertain_unit> units_;
  std::vector<std::uint32_t> uncertain_;
  std::vector<std::pair<queue*, std::shared_ptr<drive_request>>> in_flight_;
  std::uint64_t events_ = 0;
  std::uint64_t durable_hash_ = 0;
  splitmix64 random_{1};
  persistence_observer* observer_ = nullptr;
};

}  // namespace pmlab::simulator
