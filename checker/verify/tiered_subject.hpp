// A tiered store as a subject: eight keys, small drives, a small memory, tiny leaves, so that it ingests, spills,
// compacts, splits and fills up.
#pragma once

#include "checker/verify/register_prefix.hpp"
#include <pmlab/blocks/clock.hpp>
#include <pmlab/stores/tiered.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::verify {

// `Store`: on a virtual clock.
template <class Store>
class tiered_target : public prefix_target {
 public:
  // `open(clock)`: a store.
  template <class Open>
  explicit tiered_target(Open&& open) : store_(open(blocks::virtual_clock(time_))), table_(store_->table("t")) {
    // Names that make the manifest longer than a sector, so that a crash can tear it.
    for (char c = '0'; c < '9'; ++c) static_cast<void>(store_->table(std::string(40, c)));
  }

  std::uint64_t apply(std::span<const prefix_change> changes) override {
    try {
      if (changes.size() == 1) {
        const prefix_change c = changes.front();
        return c.number == 0 ? table_.erase(key_of(c.key)) : table_.put(key_of(c.key), value_of(c.number));
      }
      typename Store::batch b;
      for (const prefix_change& c : changes) {
        if (c.number == 0)
          b.erase(table_, key_of(c.key));
        else
          b.put(table_, key_of(c.key), value_of(c.number));
      }
      return store_->write(b);
    } catch (const stores::tiered_full&) {
      return 0;
    }
  }
  void sync() override { store_->sync(); }
  void pass(std::uint64_t milliseconds) override {
    const std::uint64_t until = time_.now() + milliseconds * 1'000'000'000;
    for (std::uint64_t due = store_->step(); due <= until; due = store_->step()) time_.advance_to(due);
    time_.advance_to(until);
  }
  void compact() override {
    try {
      store_->compact();
    } catch (const stores::tiered_full&) {
    }
  }
  std::uint32_t get(std::uint32_t key) override {
    const std::optional<std::string> value = table_.get(key_of(key));
    return value ? number_of(*value) : 0;
  }
  prefix_state contents(bool backward) override { return walk(nullptr, backward); }
  void hold() override {
    // The one before ends when this one is there: so two may have one moment.
    auto next = store_->snapshot();
    held_.emplace(std::move(next));
  }
  prefix_state look(prefix_look how) override {
    if (!held_) return {};
    if (how != prefix_look::gets) return walk(&*held_, how == prefix_look::backward);
    prefix_state found(prefix_keys);
    for (std::uint32_t key = 0; key < prefix_keys; ++key)
      if (const std::optional<std::string> value = table_.get(key_of(key), &*held_)) found[key] = number_of(*value);
    return found;
  }
  std::uint64_t sequence() override { return store_->stats().sequence; }
  std::string check() override {
    const indexes::check_report report = store_->check();
    if (!report.ok()) return report.violations.front();
    // One that no reader has would keep old versions for ever.
    const std::uint64_t snapshots = store_->stats().snapshots;
    if (snapshots != (held_ ? 1U : 0U)) return std::to_string(snapshots) + " snapshots are held, and one can be";
    return {};
  }

 protected:
  static stores::tiered_options options() {
    stores::tiered_options o;
    o.loss = {.at_most = std::chrono::milliseconds(10), .or_bytes = 4096};
    o.memory_limit = 16384;
    o.background = false;
    o.most_sets = 1;
    o.most_leaf_sets = 1;
    o.leaf_bytes = 500;
    o.segment_bytes = 1536;
    o.manifest_bytes = 6144;
    o.page_bytes = 512;
    o.identity = {1, 2};
    return o;
  }

 private:
  static std::string key_of(std::uint32_t key) { return std::string(key * 5, 'k') + static_cast<char>('0' + key); }
  // Most of a segment.
  static constexpr std::size_t large_bytes = 1200;
  // Values have any length, up to more than a block.
  static std::string value_of(std::uint32_t number) {
    std::string value = std::to_string(number) + ":";
    const std::size_t bytes = number >= first_large_number ? large_bytes
                              : number * 37 % 11 == 0      ? 700
                                                           : number * 53 % 190;
    while (value.size() < bytes) value += static_cast<char>('a' + (value.size() + number) % 26);
    return value;
  }
  static std::uint32_t number_of(const std::string& value) {
    const auto number = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (value != value_of(number)) throw error("a value that was never written: " + value, "");
    return number;
  }

  prefix_state walk(const typename Store::snapshot_handle* at, bool backward) {
    prefix_state found(prefix_keys);
    auto c = table_.cursor({.at = at, .way = backward ? stores::direction::backward : stores::direction::forward});
    std::string before;
    for (bool any = false; c.next(); any = true) {
      if (any && (backward ? !(c.key() < before) : !(before < c.key()))) throw error("a cursor is not in order", "");
      before = c.key();
      const auto key = static_cast<std::uint32_t>(c.key().back() - '0');
      if (key >= prefix_keys || c.key() != key_of(key)) throw error("a key that was never written: " + c.key(), "");
      found[key] = number_of(c.value());
    }
    return found;
  }

  blocks::virtual_time time_;
  std::unique_ptr<Store> store_;
  typename Store::table_handle table_;
  std::optional<typename Store::snapshot_handle> held_;
};

}  // namespace pmlab::verify
