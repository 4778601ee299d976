// The expected answer of every key, for --verify.
#include "bench/engine/model.hpp"
#include <pmlab/base/error.hpp>
#include "bench/engine/ownership.hpp"
#include "bench/workload/keys.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

using workload::operation;
using workload::operation_kind;

constexpr std::size_t first_capacity = 1024;
constexpr std::size_t reports_kept = 10;

}  // namespace

model::slot* model::find(std::uint64_t key) noexcept {
  if (slots_.empty()) return nullptr;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = spread(key) & mask; slots_[i].used; i = (i + 1) & mask)
    if (slots_[i].key == key) return &slots_[i];
  return nullptr;
}

model::slot& model::find_or_add(std::uint64_t key) {
  if (slot* const known = find(key)) return *known;
  if (2 * (used_ + 1) > slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = spread(key) & mask;
  while (slots_[i].used) i = (i + 1) & mask;
  slots_[i].used = true;
  slots_[i].key = key;
  ++used_;
  sorted_is_current_ = false;
  return slots_[i];
}

void model::grow() {
  std::vector<slot> old(slots_.empty() ? first_capacity : 2 * slots_.size());
  old.swap(slots_);
  const std::size_t mask = slots_.size() - 1;
  for (const slot& s : old) {
    if (!s.used) continue;
    std::size_t i = spread(s.key) & mask;
    while (slots_[i].used) i = (i + 1) & mask;
    slots_[i] = s;
  }
}

void model::sort_keys() {
  if (sorted_is_current_) return;
  sorted_.clear();
  sorted_.reserve(used_);
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].used) sorted_.push_back({slots_[i].key, i});
  std::sort(sorted_.begin(), sorted_.end(), [](const sorted_key& a, const sorted_key& b) { return a.key < b.key; });
  sorted_is_current_ = true;
}

void model::prepare(std::vector<std::vector<operation>>& operations) {
  ++round_;
  std::size_t longest = 0;
  bool scans = false;
  for (std::vector<operation>& mine : operations) {
    longest = std::max(longest, mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      operation& op = mine[i];
      scans |= op.kind == operation_kind::scan;
      if (!writes(op.kind)) continue;
      // Rising per thread, and so per key: a key has one writer.
      const auto sequence = static_cast<std::uint32_t>(sequence_ + 1 + i);
      op.value = workload::value_of(op.key, sequence);
      slot& s = find_or_add(op.key);
      if (s.round != round_) {
        s.round = round_;
        s.start_sequence = s.now_sequence;
        s.start_present = s.now_present;
        s.comes_or_goes = false;
      }
      s.last_sequence = sequence;
      s.comes_or_goes |= op.kind == operation_kind::insert || op.kind == operation_kind::erase;
    }
  }
  if (longest >= std::numeric_limits<std::uint32_t>::max() - sequence_)
    throw error("--verify cannot distinguish more than 2^32 writes of a run", "give fewer --operations or --repeat");
  sequence_ += static_cast<std::uint32_t>(longest);
  if (scans) sort_keys();
}

bool model::adopt(indexes::key_type key, indexes::value_type value) {
  if (!workload::is_value_of(value, key) || workload::sequence_of(value) > std::numeric_limits<std::uint32_t>::max())
    return false;
  slot& s = find_or_add(key);
  s.now_present = true;
  s.now_sequence = static_cast<std::uint32_t>(workload::sequence_of(value));
  sequence_ = std::max(sequence_, s.now_sequence);
  return true;
}

std::uint64_t model::entries() const {
  return static_cast<std::uint64_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const slot& s) { return s.used && s.now_present; }));
}

model::expectation model::expect(unsigned thread, const slot* s) const noexcept {
  if (s == nullptr) return {};
  const bool untouched = s->round != round_;
  if (untouched || owner_of(s->key, threads_) == thread)
    return {s->now_present, s->now_present, s->now_sequence, s->now_sequence};
  return {s->start_present || s->comes_or_goes, s->start_present && !s->comes_or_goes, s->start_sequence,
          s->last_sequence};
}

std::string model::wrong_value(const expectation& e, std::uint64_t key, bool found, std::uint64_t value) {
  if (!found) return e.must_be_there ? fmt::format("answered absent, but write {} put it there", e.first_sequence) : "";
  if (!e.may_be_there) return fmt::format("answered {:#x}, but the key is absent", value);
  if (!workload::is_value_of(value, key)) return fmt::format("answered {:#x}, which was never written to it", value);
  const std::uint64_t sequence = workload::sequence_of(value);
  if (sequence >= e.first_sequence && sequence <= e.last_sequence) return "";
  return fmt::format("answered the value of write {}, expected that of write {}", sequence,
                     e.first_sequence == e.last_sequence ? fmt::format("{}", e.last_sequence)
                                                         : fmt::format("{} to {}", e.first_sequence, e.last_sequence));
}

std::string model::wrong_write(const operation& op, indexes::outcome result) {
  using indexes::outcome;
  slot& s = *find(op.key);
  const bool there = s.now_present;
  outcome expected = outcome::absent;
  if (op.kind == operation_kind::insert) {
    expected = there ? outcome::exists : outcome::inserted;
    s.now_present = true;
  } else if (op.kind == operation_kind::erase) {
    expected = there ? outcome::erased : outcome::absent;
    s.now_present = false;
  } else {
    expected = there ? outcome::updated : outcome::absent;
  }
  if (expected == outcome::inserted || expected == outcome::updated)
    s.now_sequence = static_cast<std::uint32_t>(workload::sequence_of(op.value));
  if (result == expected) return "";
  return fmt::format("answered {}, expected {}", to_string(result), to_string(expected));
}

std::string model::wrong_scan(unsigned thread, const operation& op, std::span<const indexes::entry> entries) {
  auto place = std::lower_bound(sorted_.begin(), sorted_.end(), op.key,
                                [](const sorted_key& k, std::uint64_t key) { return k.key < key; });
  const auto missed_before = [&](const auto& reached) {
    for (; place != sorted_.end() && reached(place->key); ++place)
      if (expect(thread, &slots_[place->slot]).must_be_there) return true;
    return false;
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto [key, value] = entries[i];
    if (key < op.key) return fmt::format("entry {} has key {:#x}, which is below the start", i, key);
    if (i > 0 && key <= entries[i - 1].key)
      return fmt::format("entry {} has key {:#x} after {:#x}: not ascending", i, key, entries[i - 1].key);
    if (missed_before([&, k = key](std::uint64_t known) { return known < k; }))
      return fmt::format("key {:#x} is missing before entry {}", place->key, i);
    if (place == sorted_.end() || place->key != key) return fmt::format("entry {} has the unknown key {:#x}", i, key);
    const std::string problem = wrong_value(expect(thread, &slots_[place->slot]), key, true, value);
    if (!problem.empty()) return fmt::format("entry {}, key {:#x}: {}", i, key, problem);
    ++place;
  }
  if (entries.size() < op.length && missed_before([](std::uint64_t) { return true; }))
    return fmt::format("ended after {} entries of {}, before key {:#x}", entries.size(), op.length, place->key);
  return "";
}

void model::report(unsigned thread, const operation& op, const std::string& problem) {
  const std::scoped_lock lock(report_mutex_);
  if (first_wrong_.size() < reports_kept)
    first_wrong_.push_back(fmt::format("thread {}: {} of key {:#x}: {}", thread, to_string(op.kind), op.key, problem));
}

std::uint64_t model::check(unsigned thread, std::span<const operation> operations, std::span<const answer> answers,
                           std::span<const indexes::entry> scanned) {
  std::uint64_t wrong = 0;
  const auto judge = [&](const operation& op, const std::string& problem) {
    if (problem.empty()) return;
    ++wrong;
    report(thread, op, problem);
  };
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const operation& op = operations[i];
    const answer& a = answers[i];
    switch (op.kind) {
      case operation_kind::read: judge(op, wrong_value(expect(thread, find(op.key)), op.key, a.found, a.value)); break;
      case operation_kind::scan:
        judge(op, wrong_scan(thread, op, scanned.first(a.entries)));
        scanned = scanned.subspan(a.entries);
        break;
      case operation_kind::read_modify_write: {
        const std::string read = wrong_value(expect(thread, find(op.key)), op.key, a.found, a.value);
        const std::string write = wrong_write(op, a.result);
        judge(op, read.empty() ? write : read);
        break;
      }
      case operation_kind::insert:
      case operation_kind::update:
      case operation_kind::erase: judge(op, wrong_write(op, a.result)); break;
    }
  }
  return wrong;
}

}  // namespace pmlab::bench
