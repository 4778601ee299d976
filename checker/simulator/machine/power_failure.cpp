// What a power failure of all hosts leaves on their device.
//
// Each dirty copy of a line is independent of all others: the device has the version that the host had taken with the
// first of its stores above it, or nothing. Where several hosts have a copy, the one that was written back last has
// put its 64 bytes over the others'. Which one that is needs no choice of its own: of the others, nothing is kept.
// Non-temporal stores change their own bytes, whichever copy is below them.
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/hosts.hpp"

#include <cstring>

namespace pmlab::simulator {

void hosts::find_cached(std::vector<cached_stores>& places) const {
  places.clear();
  for (const shared_line& l : lines_) {
    if (memory_.is_reserved(l.number)) continue;
    for (unsigned h = 0; h < options_.hosts; ++h)
      if (const std::size_t count = l.copies[h].stores.size(); count != 0)
        places.push_back({.line = l.number, .host = h, .count = static_cast<std::uint32_t>(count)});
    for (unsigned h = 0; h < options_.hosts; ++h)
      for (std::uint32_t i = 0; i < l.copies[h].around.size(); ++i)
        places.push_back({.line = l.number, .host = h, .count = 1, .is_around = true, .place = i});
  }
}

line_words hosts::content_of(std::span<const cached_stores> places, kept_stores kept) const {
  const shared_line& l = *find(places.front().line);
  line_words words = durable_words(l.number);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (kept[i] == 0) continue;
    const host_copy& c = l.copies[places[i].host];
    if (places[i].is_around) {
      const around_store& s = c.around[places[i].place];
      words[s.word] = (words[s.word] & ~s.mask) | (s.value & s.mask);
      continue;
    }
    words = written_back(c, kept[i]);
  }
  return words;
}

void hosts::crash(std::span<const cached_stores> places, kept_stores kept) const {
  for (const shared_line& l : lines_) {
    const line_words words = durable_words(l.number);
    std::memcpy(memory_words(l.number), words.data(), sizeof words);
  }
  for_each_kept_line(places, kept, [this](std::uint32_t line, const line_words& words) {
    std::memcpy(memory_words(line), words.data(), sizeof words);
  });
}

const void* hosts::first_lost(const cached_stores& place, std::uint32_t kept) const noexcept {
  const host_copy& c = find(place.line)->copies[place.host];
  return place.is_around ? c.around[place.place].caller : c.stores[kept].caller;
}

std::string hosts::clobbers(std::span<const cached_stores> places, kept_stores kept) const {
  std::string text;
  line_words words{};          // the line's so far
  unsigned writer = 0;         // whose they are
  const void* last = nullptr;  // place of the last store in them; null: the content of before
  for (std::size_t i = 0; i < places.size(); ++i) {
    const cached_stores& p = places[i];
    const shared_line& l = *find(p.line);
    if (i == 0 || places[i - 1].line != p.line) {
      words = durable_words(p.line);
      writer = l.versions.newest().host;
      last = l.versions.newest().caller;
    }
    if (kept[i] == 0 || p.is_around) continue;
    const host_copy& c = l.copies[p.host];
    const void* const by = c.stores[kept[i] - 1].caller;
    if (last != nullptr && is_clobber(c, kept[i], words))
      text += "\n  clobber: host " + std::to_string(p.host) + "'s write-back of the line at offset " +
              std::to_string(std::size_t{p.line} * media::cache_line_bytes) + ", with its store at " +
              code_address(by) + ",\n    puts old words over host " + std::to_string(writer) + "'s store at " +
              code_address(last);
    words = written_back(c, kept[i]);
    writer = p.host;
    last = by;
  }
  return text;
}

}  // namespace pmlab::simulator
