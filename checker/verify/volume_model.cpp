// The history of a volume.
#include "checker/verify/volume_model.hpp"

#include <pmlab/base/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace pmlab::verify {

std::string to_string(const volume_step& s) {
  std::string text(s.what == volume_step::action::write  ? "write"
                   : s.what == volume_step::action::read ? "read"
                                                         : "discard");
  if (s.what == volume_step::action::write) text.append(1, ' ').append(std::to_string(s.number));
  text += "(";
  for (std::size_t i = 0; i < s.ranges.size(); ++i) {
    const block_range& r = s.ranges[i];
    text += i == 0 ? "" : ", ";
    text.append(r.count == 1 ? "block " : "blocks ").append(std::to_string(r.first));
    if (r.count > 1) text.append(" to ").append(std::to_string(r.first + r.count - 1));
  }
  return text + ")";
}

volume_model::volume_model(const volume_shape& shape) : shape_(shape) {
  if (shape.blocks == 0 || shape.chunk_blocks == 0 || shape.chunk_blocks > most_chunk_blocks)
    throw error("a volume of " + std::to_string(shape.blocks) + " blocks in chunks of " +
                    std::to_string(shape.chunk_blocks) + " cannot be verified",
                "choose chunks of 1 to " + std::to_string(most_chunk_blocks) + " blocks");
  chunks_.resize((shape.blocks + shape.chunk_blocks - 1) / shape.chunk_blocks);
  if (!shape.reads_outrun) return;
  volume_shape other = shape;
  other.reads_outrun = false;
  without_reads_ = std::make_unique<volume_model>(other);
}

void volume_model::there_before(std::span<const std::uint32_t> numbers) {
  for (std::size_t b = 0; b < numbers.size(); ++b)
    chunks_[b / shape_.chunk_blocks].courses.front().now[b % shape_.chunk_blocks] = numbers[b];
  if (without_reads_) without_reads_->there_before(numbers);
  ++clock_;
}

std::vector<volume_model::placed_part> volume_model::parts_of(unsigned thread, const volume_step& s) const {
  std::vector<placed_part> parts;
  const bool block_by_block = s.what == volume_step::action::read && !shape_.reads_are_atomic;
  for (const block_range& r : s.ranges)
    for (std::uint64_t b = r.first; b < r.first + r.count; ++b) {
      const std::size_t number = b / shape_.chunk_blocks;
      const std::uint32_t bit = 1U << (b % shape_.chunk_blocks);
      if (block_by_block || parts.empty() || parts.back().chunk != number)
        parts.push_back({number, {thread, s.what, 0, s.number}});
      parts.back().what.blocks |= bit;
    }
  return parts;
}

void volume_model::called(unsigned thread, const volume_step& s) {
  ++clock_;
  if (without_reads_ && s.what != volume_step::action::read) without_reads_->called(thread, s);
  if (running_.size() <= thread) running_.resize(thread + 1);
  running_[thread] = to_string(s);
  for (const auto& [number, p] : parts_of(thread, s)) {
    chunk& c = chunks_[number];
    c.under_way.push_back(p);
    for (course& one : c.courses) one.effects.emplace_back();
    c.reachable.clear();
  }
}

// Adds every course that follows from one of these, when more operations under way take effect.
void volume_model::let_happen(chunk& c) {
  std::set<course> known(c.courses.begin(), c.courses.end());
  for (std::size_t from = 0; from < c.courses.size(); ++from)
    for (std::size_t i = 0; i < c.under_way.size(); ++i) {
      if (c.courses[from].effects[i].done) continue;
      course next = c.courses[from];
      const part& p = c.under_way[i];
      next.effects[i].done = true;
      for (std::size_t b = 0; b < most_chunk_blocks; ++b) {
        if ((p.blocks >> b & 1U) == 0) continue;
        if (p.what == volume_step::action::read)
          next.effects[i].seen[b] = next.now[b];
        else
          next.now[b] = p.what == volume_step::action::write ? p.number : 0;
      }
      if (known.insert(next).second) c.courses.push_back(std::move(next));
    }
}

std::string volume_model::end(std::size_t number, const part& p, const content& got, std::optional<bool> done) {
  chunk& c = chunks_[number];
  let_happen(c);
  const auto place =
      static_cast<std::size_t>(std::find(c.under_way.begin(), c.under_way.end(), p) - c.under_way.begin());
  const bool reads = p.what == volume_step::action::read;
  std::set<course> left;
  for (course& one : c.courses) {
    const effect& e = one.effects[place];
    if (done && e.done != *done) continue;
    if (reads && e.seen != got) continue;
    one.effects.erase(one.effects.begin() + static_cast<std::ptrdiff_t>(place));
    left.insert(std::move(one));
  }
  if (left.empty()) return "chunk " + std::to_string(number) + story(number);
  c.courses.assign(left.begin(), left.end());
  c.under_way.erase(c.under_way.begin() + static_cast<std::ptrdiff_t>(place));
  c.reachable.clear();
  return {};
}

std::string volume_model::returned(unsigned thread, const volume_step& s, std::span<const std::uint32_t> got,
                                   bool full) {
  ++clock_;
  if (without_reads_ && s.what != volume_step::action::read)
    if (std::string wrong = without_reads_->returned(thread, s, got, full); !wrong.empty()) return wrong;
  const std::vector<placed_part> parts = parts_of(thread, s);
  // Some parts of a write to several chunks that found no room may have been written.
  std::optional<bool> done = !full;
  if (full && parts.size() > 1) done = std::nullopt;
  std::size_t at = 0;
  for (const auto& [number, p] : parts) {
    content seen{};
    if (s.what == volume_step::action::read)
      for (std::size_t b = 0; b < most_chunk_blocks; ++b)
        if ((p.blocks >> b & 1U) != 0) seen[b] = got[at++];
    std::string before;
    if (s.what == volume_step::action::read) before = in_words(seen);
    if (std::string wrong = end(number, p, seen, done); !wrong.empty())
      return to_string(s) +
             (s.what == volume_step::action::read ? " returns " + before
              : full                              ? " answers full"
                                                  : "") +
             ", which no order of the operations explains: " + wrong;
  }
  running_[thread].clear();
  return {};
}

std::string volume_model::judge(std::span<const std::uint32_t> numbers) {
  const bool any = std::any_of(chunks_.begin(), chunks_.end(), [](const chunk& c) { return !c.under_way.empty(); });
  if (without_reads_ && any) return without_reads_->judge(numbers);
  for (std::size_t number = 0; number < chunks_.size(); ++number) {
    chunk& c = chunks_[number];
    if (c.reachable.empty()) {
      chunk all = c;
      let_happen(all);
      for (const course& one : all.courses)
        if (std::find(c.reachable.begin(), c.reachable.end(), one.now) == c.reachable.end())
          c.reachable.push_back(one.now);
    }
    content found{};
    const std::size_t first = number * shape_.chunk_blocks;
    for (std::size_t b = 0; b < shape_.chunk_blocks && first + b < numbers.size(); ++b) found[b] = numbers[first + b];
    if (std::find(c.reachable.begin(), c.reachable.end(), found) == c.reachable.end())
      return "chunk " + std::to_string(number) + " holds the writes " + in_words(found) + story(number);
  }
  return {};
}

std::string volume_model::in_words(const content& c) const {
  std::string text;
  for (std::size_t b = 0; b < shape_.chunk_blocks; ++b)
    text.append(text.empty() ? "[" : " ").append(std::to_string(c[b]));
  return text + "]";
}

std::string volume_model::story(std::size_t number) const {
  const chunk& c = chunks_[number];
  std::string text = "; it held ";
  std::vector<content> told;
  for (const course& one : c.courses) {
    bool any = false;
    for (const effect& e : one.effects) any = any || e.done;
    if (any || std::find(told.begin(), told.end(), one.now) != told.end()) continue;
    text.append(told.empty() ? "" : " or ").append(in_words(one.now));
    told.push_back(one.now);
  }
  for (const part& p : c.under_way) {
    text += p.what == volume_step::action::write  ? ", under way: write "
            : p.what == volume_step::action::read ? ", under way: a read"
                                                  : ", under way: a discard";
    if (p.what == volume_step::action::write) text += std::to_string(p.number);
    text += " of places";
    for (std::size_t b = 0; b < shape_.chunk_blocks; ++b)
      if ((p.blocks >> b & 1U) != 0) text.append(1, ' ').append(std::to_string(b));
  }
  return text;
}

std::string volume_model::under_way() const {
  std::string text;
  for (std::size_t t = 0; t < running_.size(); ++t) {
    if (running_[t].empty()) continue;
    text += text.empty() ? "" : ", ";
    text += running_[t];
    if (running_.size() > 1) text += " (thread " + std::to_string(t) + ")";
  }
  return text;
}

}  // namespace pmlab::verify
