// Ageing: versions of the root become sets of leaves, and the sets of a leaf become one.
//
// A value of the root is copied to the drive of leaf values, unless that is full: then it stays in the log's segment. A
// value that is in a leaf stays where it is, unless its segment is poor: mostly garbage. When the last value has left a
// segment, no set refers to it, and it is free.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/cursor.hpp>
#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/leaf.hpp>
#include <pmlab/stores/tiered/options.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/survivors.hpp>
#include <pmlab/stores/tiered/value_reader.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// A version on its way into another set.
struct moved_version : wanted_version {
  bool is_of_root = false;
  std::uint64_t covers = 0;
};

// Versions of several sets, in order, from a place to another. Each page is read once.
template <blocks::device Device>
class merged_sets {
 public:
  // `are_of_root`: the sets are those of the root.
  merged_sets(std::span<const std::shared_ptr<const key_set<Device>>> sets, bool are_of_root, const version_name& from)
      : are_of_root_(are_of_root) {
    for (const auto& s : sets) {
      parts_.push_back({set_source<Device>(s, key_set<Device>::pages_ahead)});
      parts_.back().stand(parts_.back().source.seek(from));
    }
  }
  // `next` returns the versions before `end`; without one: all.
  void ends_at(const std::optional<version_name>& end) { end_ = end; }
  [[nodiscard]] std::optional<moved_version> next() {
    set_part<Device>* const least = part_of_least(parts_);
    if (least == nullptr || (end_ && !(*least->head < *end_))) return std::nullopt;
    std::optional<moved_version> found(std::in_place);
    found->is_of_root = are_of_root_;
    least->source.take(found->version);
    least->stand(least->source.step());
    return found;
  }

 private:
  bool are_of_root_;
  std::optional<version_name> end_;
  std::vector<set_part<Device>> parts_;
};

// What ageing needs of its tree.
struct rewrite_rules {
  placement_table place{};
  std::uint64_t horizon = 0;
  std::uint64_t leaf_bytes = 0;
  kept_segments keys_keep{};                            // segments that are left free
  kept_segments values_keep{};                          // likewise, by values
  std::optional<std::set<std::uint32_t>> only{};        // values elsewhere stay; std::nullopt: see the rules below
  std::uint32_t garbage_percent = 100;                  // a segment with so much garbage is poor; 100: none is
  std::uint32_t remembered_percent = 100;               // leaf::garbage_percent of merged leaves
  std::map<std::uint32_t, std::uint64_t> live_bytes{};  // live bytes of each segment of values, as far as it is known
  std::function<std::uint64_t()> next_id{};
};

// Makes the sets of one transaction. It has references to their segments while it exists.
template <blocks::device Device>
class leaf_rewriter {
  using set_pointer = std::shared_ptr<const key_set<Device>>;

 public:
  leaf_rewriter(const set_context<Device>& context, const drive_pair<Device>& on, rewrite_rules rules)
      : context_(context),
        rules_(std::move(rules)),
        io_(on),
        reader_(on),
        keys_(context, io_, rules_.place.leaf_keys, rules_.keys_keep, blocks::stream::keys),
        values_(context, io_, rules_.place.leaf_values, rules_.values_keep, blocks::stream::values) {}

  // The leaf `old` with the next ones of `versions`, which merges the sets `root`: those before `end`, where the next
  // leaf begins. A leaf that was empty, and gets too much, becomes several. Throws tiered_full.
  void spill(const leaf<Device>& old, const std::optional<version_name>& end, std::span<const set_pointer> root,
             merged_sets<Device>& versions, leaf_list<Device>& into) {
    const bool is_lowest = old.sets.empty();
    begin_plan();
    if (is_lowest) plan(old, merged_sets<Device>(root, true, old.begin()), end);
    begin(old, root, false);
    move(old, is_lowest, versions, end, into);
    if (is_lowest) return;
    if (into.back()->sets.empty()) {
      into.back() = std::make_shared<leaf<Device>>(old);
      return;
    }
    auto more = std::make_shared<leaf<Device>>(*into.back());  // the set is one more
    more->sets.insert(more->sets.end(), old.sets.begin(), old.sets.end());
    into.back() = std::move(more);
  }
  // The sets of the leaf `old` as one; a leaf that is too large becomes several. Throws tiered_full.
  void merge(const leaf<Device>& old, const std::optional<version_name>& end, leaf_list<Device>& into) {
    begin_plan();
    plan(old, merged_sets<Device>(old.sets, false, old.begin()), end);
    begin(old, {}, true);
    merged_sets<Device> all(old.sets, false, old.begin());
    move(old, true, all, end, into);
  }

  // All that it made is durable on return.
  void make_durable() {
    values_.finish();
    keys_.finish();
    io_.flush(blocks::stream::keys);  // (S1)
  }
  [[nodiscard]] const std::vector<set_pointer>& made() const noexcept { return made_; }
  // Another transaction begins; it fills the segments of this one further. `live`: of each segment of values, now.
  void go_on(std::map<std::uint32_t, std::uint64_t> live) {
    made_.clear();
    copied_ = 0;
    rules_.live_bytes = std::move(live);
  }
  // Bytes of values that were copied.
  [[nodiscard]] std::uint64_t copied() const noexcept { return copied_; }

 private:
  // Values that are in memory at once: with the last of them, they may be twice as many bytes. In the log, the values
  // that a spill needs next lie far from each other, with those that it needs soon between them: the more at once, the
  // more neighbours.
  static constexpr std::uint64_t most_batch_bytes = std::uint64_t{1} << 20;
  static constexpr std::size_t most_batch_values = 1024;

  void begin_plan() {
    poor_ = rules_.only.value_or(std::set<std::uint32_t>());
    stayed_ = rules_.only.has_value();
    piece_bytes_ = ~std::uint64_t{0};
  }
  // Reads the keys once, to know what will be live: which segments are poor, and how large each leaf will be.
  void plan(const leaf<Device>& old, merged_sets<Device> all, const std::optional<version_name>& end) {
    all.ends_at(end);
    std::map<std::uint32_t, std::uint64_t> live;
    std::uint64_t total = 0;
    survivors rule(rules_.horizon, true);
    while (const std::optional<moved_version> one = all.next()) {
      const found_version& v = one->version;
      if (!rule.stays(v)) continue;
      total += v.value_bytes + v.key.size() + sizeof(page_entry);
      if (v.has_value() && !one->is_of_root) live[v.place.segment] += v.value_bytes;
    }
    if (total >= 2 * rules_.leaf_bytes) piece_bytes_ = total / (total / rules_.leaf_bytes);
    if (rules_.only) return;
    std::map<std::uint32_t, std::uint64_t> before;
    for (const set_pointer& s : old.sets)
      for (const segment_share& v : s->described().value_segments) before[v.segment] += v.bytes;
    for (const auto& [segment, bytes] : before) {
      // Other leaves may have values there, too.
      std::uint64_t& known = rules_.live_bytes[segment];
      known = known - bytes + live[segment];
      if (known * 100 < std::uint64_t{context_.where.segment_bytes} * (100 - rules_.garbage_percent))
        poor_.insert(segment);
    }
  }

  void begin(const leaf<Device>& old, std::span<const set_pointer> root, bool merges) {
    first_ = ~std::uint64_t{0};
    last_ = 0;
    const auto span = [&](const set_pointer& s) {
      first_ = std::min(first_, s->described().first);
      last_ = std::max(last_, s->described().last);
    };
    for (const set_pointer& s : root) span(s);
    if (merges)
      for (const set_pointer& s : old.sets) span(s);
    now_ = {old.table, old.bound, {}, rules_.horizon, merges ? rules_.remembered_percent : 0};
    writer_.emplace(context_, keys_, rules_.next_id(), first_, last_);
  }

  // Moves the versions before `end` that stay into sets of the leaf, or of those that it becomes.
  void move(const leaf<Device>& old, bool is_lowest, merged_sets<Device>& all, const std::optional<version_name>& end,
            leaf_list<Device>& into) {
    all.ends_at(end);
    survivors rule(rules_.horizon, is_lowest);
    std::vector<moved_version> batch;
    std::uint64_t bytes = 0;
    for (;;) {
      std::optional<moved_version> one = all.next();
      if (one && !rule.stays(one->version)) continue;
      if (one) {
        if (!is_lowest) one->covers = covered_by(old, one->version);
        if (one->version.has_value()) bytes += one->version.value_bytes;
        batch.push_back(std::move(*one));
      }
      if (batch.size() == most_batch_values || bytes >= most_batch_bytes || !one) {
        add(batch, into);
        bytes = 0;
      }
      if (!one) break;
    }
    finish_set(into);
  }

  // About the bytes of the value that `v` replaces.
  [[nodiscard]] static std::uint64_t covered_by(const leaf<Device>& old, const found_version& v) {
    const std::uint64_t hash = hash_of(v.table, v.key);
    for (const set_pointer& s : old.sets)
      if (s->may_have(hash)) return s->value_bytes() / std::max<std::uint64_t>(s->described().entries, 1);
    return 0;
  }

  // Adds the versions of `batch`, and empties it.
  void add(std::vector<moved_version>& batch, leaf_list<Device>& into) {
    std::vector<wanted_version*> wanted;
    std::uint64_t bytes = 0;
    for (moved_version& m : batch)
      if (must_move(m)) {
        wanted.push_back(&m);
        bytes += m.version.value_bytes;
      }
    // The values alone are kept, without the rest of their blocks.
    const auto values = std::make_shared<blocks::buffer>(bytes);
    std::size_t filled = 0;
    reader_.read(wanted, blocks::stream::values, [&](std::span<wanted_version* const> some) {
      for (wanted_version* const w : some) {
        const std::span<const std::byte> value = w->value();
        std::copy(value.begin(), value.end(), values->bytes().begin() + static_cast<std::ptrdiff_t>(filled));
        w->blocks = values;
        w->begin = filled;
        filled += value.size();
      }
    });
    for (moved_version& m : batch) {
      if (m.blocks != nullptr) copy(m);
      if (writer_->bytes() >= piece_bytes_ && !writer_->ends_with(m.version)) {
        const std::uint32_t percent = now_.garbage_percent;
        finish_set(into);
        now_ = {m.version.table, m.version.key, {}, rules_.horizon, percent};
        writer_.emplace(context_, keys_, rules_.next_id(), first_, last_);
      }
      if (!writer_->add(m.version, m.covers)) full();
    }
    batch.clear();
  }
  // A value of a leaf that is on the staging drive, and should not be, had no room when it was spilled.
  [[nodiscard]] bool must_move(const moved_version& m) const {
    if (!m.version.has_value()) return false;
    const std::uint32_t segment = m.version.place.segment;
    if (rules_.only) return poor_.contains(segment);
    return m.is_of_root || poor_.contains(segment) ||
           (rules_.place.leaf_values == media_class::capacity && class_of(segment) == media_class::staging);
  }
  void copy(moved_version& m) {
    found_version& v = m.version;
    const std::span<const std::byte> bytes = m.value();
    check_value({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, v);
    const std::optional<value_place> to = values_.append(bytes);
    if (!to) {  // it stays, and its segment with it, until there is room
      stayed_ = true;
      return;
    }
    v.place = *to;
    copied_ += v.value_bytes;
  }
  void finish_set(leaf_list<Device>& into) {
    std::shared_ptr<key_set<Device>> one = writer_->finish();
    if (one == nullptr) full();
    if (stayed_) now_.garbage_percent = 100;  // it is not free of garbage yet
    if (one->described().entries > 0) {
      now_.sets.push_back(one);
      made_.push_back(one);
    }
    into.push_back(std::make_shared<leaf<Device>>(std::move(now_)));
    writer_.reset();
  }
  [[noreturn]] static void full() {
    throw tiered_full("no free segment for keys of leaves",
                      "erase keys; end old snapshots and cursors; or use a larger drive");
  }

  set_context<Device> context_;
  rewrite_rules rules_;
  segment_io<Device> io_;
  value_reader<Device> reader_;
  segment_writer<Device> keys_;
  segment_writer<Device> values_;
  std::vector<set_pointer> made_;
  std::uint64_t copied_ = 0;

  // Segments with much garbage: the leaf that is being rewritten moves its values out of them.
  std::set<std::uint32_t> poor_;
  bool stayed_ = false;  // a value that was to move has not
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  leaf<Device> now_;
  std::optional<set_writer<Device>> writer_;
};

}  // namespace pmlab::stores::detail::tiered
