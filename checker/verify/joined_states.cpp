// The states that a crash may leave at any of several crash points, and the search that branches on what is read.
#include "checker/verify/joined_states.hpp"

#include <algorithm>
#include <cstring>

namespace pmlab::verify {
namespace {

// All bits of each byte of a word, for the 8 bits of `bytes`.
std::uint64_t bits_of(byte_mask bytes) noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < 8; ++i)
    if ((bytes >> i & 1) != 0) bits |= std::uint64_t{0xff} << 8 * i;
  return bits;
}

}  // namespace

line_content only(const line_content& content, byte_mask bytes) noexcept {
  line_content part{};
  for (std::size_t w = 0; w < content.size(); ++w) part[w] = content[w] & bits_of(bytes >> 8 * w & 0xff);
  return part;
}

void put(std::byte* line, const line_content& content, byte_mask bytes) noexcept {
  for (std::size_t w = 0; w < content.size(); ++w) {
    const std::uint64_t bits = bits_of(bytes >> 8 * w & 0xff);
    if (bits == 0) continue;
    std::uint64_t word;
    std::memcpy(&word, line + w * sizeof word, sizeof word);
    word = (word & ~bits) | (content[w] & bits);
    std::memcpy(line + w * sizeof word, &word, sizeof word);
  }
}

byte_mask difference(const line_content& a, const line_content& b) noexcept {
  byte_mask bytes = 0;
  for (std::size_t w = 0; w < a.size(); ++w) {
    const std::uint64_t differs = a[w] ^ b[w];
    for (unsigned i = 0; i < 8 && differs != 0; ++i)
      if ((differs >> 8 * i & 0xff) != 0) bytes |= byte_mask{1} << (8 * w + i);
  }
  return bytes;
}

void joined_states::clear() {
  points_ = 0;
  lines_.clear();
  place_of_.clear();
}

void joined_states::set(std::uint32_t number, const line_content& before, std::span<const line_content> now) {
  const auto [found, is_new] = place_of_.try_emplace(number, lines_.size());
  if (is_new) {
    lines_.push_back({number, {}, {}});
    if (points_ > 1) {
      lines_.back().contents.push_back({before, {}});
      lines_.back().contents.back().points.add_below(points_ - 1);
    }
  }
  line& l = lines_[found->second];
  l.current.clear();
  for (const line_content& c : now) {
    const auto same =
        std::find_if(l.contents.begin(), l.contents.end(), [&](const possible& p) { return p.content == c; });
    const auto place = static_cast<std::uint32_t>(same - l.contents.begin());
    if (same == l.contents.end()) l.contents.push_back({c, {}});
    if (std::find(l.current.begin(), l.current.end(), place) == l.current.end()) l.current.push_back(place);
  }
}

void joined_states::end_point() {
  for (line& l : lines_)
    for (const std::uint32_t c : l.current) l.contents[c].points.add(points_ - 1);
}

course_search::course_search(const joined_states& states, const point_set& points)
    : states_(states), initial_(points), at_(states.lines().size()) {
  for (const joined_states::line& l : states.lines()) {
    byte_mask differ = 0;
    const line_content* first = nullptr;
    for (const joined_states::possible& p : l.contents) {
      if (!p.points.meets(points)) continue;
      if (first == nullptr) first = &p.content;
      differ |= difference(*first, p.content);
    }
    uncertain_.push_back(differ);
  }
}

bool course_search::next() {
  if (depth_ != decisions_.size()) deterministic_ = false;
  while (began_ && !decisions_.empty() && decisions_.back().taken + 1 == decisions_.back().values.size())
    decisions_.pop_back();
  if (began_ && decisions_.empty()) return false;
  if (began_) ++decisions_.back().taken;
  began_ = true;
  for (const std::size_t place : touched_) at_[place] = {};
  touched_.clear();
  alive_ = initial_;
  depth_ = 0;
  return true;
}

bool course_search::agrees(std::size_t place, const line_content& content) const noexcept {
  const line_course& l = at_[place];
  return only(content, l.read) == l.content;
}

byte_mask course_search::read(std::size_t place, byte_mask bytes) {
  line_course& l = at_[place];
  bytes &= uncertain_[place] & ~l.decided;
  if (bytes == 0) return 0;
  touched_.push_back(place);
  std::vector<line_content> values;
  for (const joined_states::possible& p : states_.lines()[place].contents) {
    if (!p.points.meets(alive_) || !agrees(place, p.content)) continue;
    const line_content value = only(p.content, bytes);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  line_content chosen = values.front();
  if (values.size() > 1) {
    if (depth_ == decisions_.size()) decisions_.push_back({place, bytes, std::move(values), 0});
    decision& d = decisions_[depth_];
    if (d.place != place || d.bytes != bytes) {
      deterministic_ = false;
      return 0;
    }
    chosen = d.values[d.taken];
    ++depth_;
  }
  l.decided |= bytes;
  l.read |= bytes;
  for (std::size_t w = 0; w < chosen.size(); ++w) l.content[w] |= chosen[w];
  narrow(place);
  return bytes;
}

// A point remains if the line may have what was read of it there.
void course_search::narrow(std::size_t place) {
  point_set possible;
  for (const joined_states::possible& p : states_.lines()[place].contents)
    if (agrees(place, p.content)) possible.add(p.points);
  alive_.keep_only(possible);
}

}  // namespace pmlab::verify
