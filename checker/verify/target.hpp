// An index under verification: opened on some medium, behind virtual calls.
#pragma once

#include "checker/verify/image_medium.hpp"
#include "checker/verify/operations.hpp"
#include <pmlab/base/spec.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::verify {

class target {
 public:
  // Forwards to its medium in combinations. Verification has no time.
  static constexpr media::optional_parts parts{};

  target() = default;
  target(const target&) = delete;
  target& operator=(const target&) = delete;
  virtual ~target() = default;

  virtual answer perform(const step& s) = 0;
  // values[i] := find(keys[i]), as indexes::point_index.
  virtual void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = perform({action::find, keys[i], 0}).found;
  }
  // As indexes::loadable_index.
  virtual std::size_t load(std::span<const indexes::entry> ascending) {
    for (std::size_t i = 0; i < ascending.size(); ++i)
      if (perform({action::insert, ascending[i].key, ascending[i].value}).changed == indexes::outcome::full) return i;
    return ascending.size();
  }
  // Only of ordered ones: as indexes::ordered_index.
  virtual std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) = 0;
  // Only where subject::iterates: the keys that an iterator over all of them returns beside other operations, in its
  // order. Their number; `out` has the first ones.
  virtual std::size_t iterate(std::span<std::uint64_t> /*out*/) { return 0; }
  // Writes every entry to `out`, in ascending order of keys (equal keys side by side).
  virtual void entries(std::vector<indexes::entry>& out) = 0;
  // The keys that a run uses, ascending: for a target that has no walk of its own. They outlive it.
  virtual void know_keys(const std::vector<std::uint64_t>& /*keys*/) {}
  // The first violated invariant; "": none.
  virtual std::string check() = 0;
  // The same of an index that was opened this moment, and has nothing to put off any more.
  virtual std::string check_opened() { return check(); }
  // Bytes of the medium that the index holds; nothing: unknown.
  virtual std::optional<std::uint64_t> held_bytes() = 0;
};

// It has target::iterate.
template <class Index>
concept iterated_index = requires(Index& index, std::span<std::uint64_t> out) {
  { index.iterate(out) } -> std::same_as<std::size_t>;
};

template <indexes::point_index Index, class Medium>
class typed_target final : public target {
 public:
  // Opens the index on a separate medium.
  typed_target() requires std::default_initializable<Medium> : own_(std::make_unique<Medium>()),
                                                               index_(Index::open(*own_)) {}
  explicit typed_target(Medium& medium) : index_(Index::open(medium)) {}

  answer perform(const step& s) override { return verify::perform(s, index_); }

  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) override {
    index_.find_batch(keys, values);
  }

  std::size_t load(std::span<const indexes::entry> ascending) override {
    if constexpr (indexes::loadable_index<Index>) return index_.load(ascending);
    return target::load(ascending);
  }

  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) override {
    if constexpr (indexes::ordered_index<Index>) return index_.scan(from, out);
    return 0;
  }

  std::size_t iterate(std::span<std::uint64_t> out) override {
    if constexpr (iterated_index<Index>) return index_.iterate(out);
    return 0;
  }

  void entries(std::vector<indexes::entry>& out) override {
    out.clear();
    index_.for_each([&out](std::uint64_t key, std::uint64_t value) { out.push_back({key, value}); });
    if constexpr (!indexes::ordered_index<Index>)
      std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  }

  std::string check() override { return first_of(index_.check()); }
  std::string check_opened() override {
    if constexpr (requires { index_.check_opened(); }) return first_of(index_.check_opened());
    return check();
  }

  std::optional<std::uint64_t> held_bytes() override { return index_.stats().medium_bytes; }

 private:
  static std::string first_of(const indexes::check_report& report) {
    return report.ok() ? std::string() : report.violations.front();
  }

  std::unique_ptr<Medium> own_;
  Index index_;
};

class crash_image;
struct volume_kind;
struct prefix_kind;

// How an index is opened, or a store.
struct subject {
  std::string name;
  bool ordered = false;
  bool image_is_ordered = false;  // so is what is opened on an image
  bool loads = false;             // its `load` is more than one insert after the other
  bool iterates = false;          // it has iterators of keys: target::iterate
  // The key of a hash table with this hash, so that some of its segments can be filled before others. Or nullptr.
  std::uint64_t (*key_of_hash)(std::uint64_t hash) = nullptr;
  // Closed, it keeps room for records to come, which the next opening frees.
  bool keeps_room = false;
  // Its recovery differs from that of the index whose name it has.
  bool is_mutant = false;
  // A store on a drive of few blocks: it may answer `full`, though the memory refused it nothing, and its rounds do not
  // begin with many keys.
  bool fills_up = false;
  // Several hosts may open it in one memory: it keeps no lock and nothing else in DRAM that others must see.
  bool shared_by_hosts = false;
  // A single host may open what a power failure of all of them has left.
  bool survives_power_failure = false;
  // The shared object whose index runs on the machine.
  std::string object{};
  // By host, from the second one on: `open_simulated` of that host's own copy of the object.
  std::vector<std::function<std::unique_ptr<target>()>> open_on_host{};
  // On the memory that the simulated machine watches; instrumented.
  std::function<std::unique_ptr<target>()> open_simulated{};
  // In DRAM of the simulated machine, for a combination that has a part there; instrumented.
  std::function<std::unique_ptr<target>()> open_in_dram{};
  // The part of that which survives a crash, if that is not all of it.
  std::function<std::unique_ptr<target>()> open_durable_part{};
  // It starts threads of its own: its rounds have a schedule, even with one thread.
  bool has_threads = false;
  // Opens it on an image.
  std::unique_ptr<target> (*open_image)(image_medium& medium) = nullptr;
  // The drives that it is opened on beside the memory, and how it is opened on their image: in place of open_image.
  std::vector<blocks::geometry> drives{};
  // The drives of rounds that soon fill them; empty: the same.
  std::vector<blocks::geometry> small_drives{};
  std::unique_ptr<target> (*open_image_on_drives)(crash_image& image) = nullptr;
  // A store of blocks, not of keys: how it is opened. Null: it is an index.
  std::shared_ptr<const volume_kind> volume{};
  // A store of keys of whose changes a crash may take the newest: how it is opened. Null: it is none.
  std::shared_ptr<const prefix_kind> prefix{};

  // For an index that chooses its memory itself, and cannot be opened on an image: it is opened at the same address, in
  // a crashed process, by a fresh copy of the code.
  std::unique_ptr<target> (*open_recovered)() = nullptr;
  void (*after_run)() = nullptr;
  // It reserves keys and values as sentinels (0, the greatest) and has no upsert: rounds do not use these.
  bool reserves_sentinels = false;

  // For a combination with a replica of its data: the replica's index on an image, so that it can run out of space as
  // well. Or nullptr.
  std::unique_ptr<target> (*open_replica_on_image)(image_medium& medium) = nullptr;

  // Rounds never use these.
  missing_operations missing{};
};

// A combination of indexes: a cache in front of one, or several of them side by side. Its specification
// NAME(INDEX,...,KEY=VALUE,...) names them.
struct combination {
  std::string name;
  // The specifications of the indexes that it is made of; of the first one, all is that a crash leaves. Those that end
  // in "@dram" are in DRAM. Throws pmlab::error if `given` cannot be understood.
  std::vector<std::string> (*parts)(const spec& given) = nullptr;
  // Instrumented; `parts` are open, in that order.
  std::unique_ptr<target> (*combine)(const spec& given, std::vector<std::unique_ptr<target>> parts) = nullptr;
};

}  // namespace pmlab::verify
