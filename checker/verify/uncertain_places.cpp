// All that a crash may lose now.
#include "checker/verify/uncertain_places.hpp"

#include "checker/simulator/machine/code_address.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

namespace pmlab::verify {
namespace {

using simulator::code_address;
using simulator::drive_request;
using simulator::persistent_drive;

std::string in_words(const drive_request& r) {
  const auto [what, of, count, first, data, tag] = r.asked;
  std::string text(blocks::name_of(what));
  text += count == 1 ? " of block " + std::to_string(first)
                     : " of blocks " + std::to_string(first) + " to " + std::to_string(first + count - 1);
  return text + (r.completed == 0 ? ", in flight" : ", completed") + ", submitted at " + code_address(r.callers);
}

std::size_t units_of(const persistent_drive& drive, const drive_request& r) {
  const blocks::geometry& g = drive.shape();
  const std::size_t first = r.asked.first * g.block_bytes / g.unit_bytes();
  return ((r.asked.first + r.asked.count) * g.block_bytes - 1) / g.unit_bytes() - first + 1;
}

// In the order of submissions, with the number of units in which each is lost.
std::map<std::uint64_t, std::pair<const drive_request*, std::size_t>> lost_requests(const persistent_drive& drive,
                                                                                    uncertain_places::choice c) {
  std::map<std::uint64_t, std::pair<const drive_request*, std::size_t>> lost;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto& versions = drive.unit(drive.uncertain()[i]).versions;
    const drive_request* last = nullptr;
    for (std::size_t k = c[i]; k < versions.size(); ++k) {
      const drive_request* const r = versions[k].of.get();
      if (r == last) continue;  // two versions of one discard
      last = r;
      auto& known = lost[r->submitted];
      known.first = r;
      ++known.second;
    }
  }
  return lost;
}

}  // namespace

std::size_t uncertain_places::place_of(const persistent_drive& drive, std::uint32_t unit) const noexcept {
  std::size_t from = lines();
  for (const persistent_drive* d : drives_) {
    if (d == &drive) break;
    from += d->uncertain().size();
  }
  return from + drive.unit(unit).position;
}

std::size_t uncertain_places::place_of(std::uint32_t line, unsigned host) const noexcept {
  std::size_t at = cached_.size() - 1;
  while (cached_[at].line != line || cached_[at].host != host) --at;
  return logged() + at;
}

std::uint64_t uncertain_places::hash(choice c) const {
  std::uint64_t hash = memory_.durable_hash();
  for (std::size_t i = 0; i < logged(); ++i)
    if (c[i] != 0) hash = memory_.hash_with(hash, memory_.log(memory_.unpersisted()[i]), c[i]);
  if (!cached_.empty())
    hosts_->for_each_kept_line(cached_, cached_of(c), [&](std::uint32_t line, const simulator::line_words& words) {
      hash = memory_.hash_with(hash, line, words);
    });
  for_each_drive(c, [&](std::size_t number, const persistent_drive& drive, choice of_drive) {
    std::uint64_t content = drive.durable_hash();
    for (std::size_t i = 0; i < of_drive.size(); ++i)
      if (of_drive[i] != 0) content = drive.hash_with(content, drive.uncertain()[i], of_drive[i]);
    hash ^= mix_bits(content + (number + 1) * golden_ratio);
  });
  return hash;
}

void uncertain_places::write_memory(std::byte* target, choice c) const {
  memory_.write_image(target, logged_of(c));
  if (cached_.empty()) return;
  hosts_->for_each_kept_line(cached_, cached_of(c), [&](std::uint32_t line, const simulator::line_words& words) {
    std::memcpy(target + std::size_t{line} * media::cache_line_bytes, words.data(), sizeof words);
  });
}

void uncertain_places::crash_memory(choice c) const {
  memory_.crash(logged_of(c));
  if (hosts_ != nullptr) hosts_->crash(cached_, cached_of(c));
}

void uncertain_places::write(crash_image& image, choice c) const {
  write_memory(image.memory().area(), c);
  image.memory().begin(memory_.used_bytes(), memory_.blocks().snapshot(), memory_.blocks().live_bytes());
  for_each_drive(c, [&](std::size_t number, const persistent_drive& drive, choice of_drive) {
    drive.find_image(image.drive(number).base(), of_drive);
    image.drive(number).begin();
  });
}

std::vector<std::vector<std::byte>> uncertain_places::contents_of_drives(choice c) const {
  std::vector<std::vector<std::byte>> images;
  for_each_drive(c, [&](std::size_t, const persistent_drive& drive, choice of_drive) {
    images.emplace_back(drive.shape().bytes());
    drive.write_image(images.back().data(), of_drive);
  });
  return images;
}

std::string uncertain_places::describe_loss(choice c) const {
  std::string text;
  const auto lost = [&] { return std::string("\n  lost: ") + (text.empty() ? "" : "and "); };
  const auto lost_of_line = [&](std::uint32_t line, unsigned host, std::size_t count, const void* first) {
    text += lost() + std::to_string(count) + " store(s)" +
            (hosts_ == nullptr ? std::string() : " of host " + std::to_string(host)) + " to the line at offset " +
            std::to_string(std::size_t{line} * media::cache_line_bytes) + ", first the one at " + code_address(first);
  };
  for (std::size_t i = 0; i < logged(); ++i) {
    const simulator::unpersisted_line& l = memory_.log(memory_.unpersisted()[i]);
    if (c[i] == l.stores.size()) continue;
    const unsigned host = hosts_ == nullptr ? 0 : hosts_->holder(l.number);
    lost_of_line(l.number, host, l.stores.size() - c[i], l.stores[c[i]].caller);
  }
  for (std::size_t i = 0; i < cached_.size(); ++i) {
    const simulator::cached_stores& p = cached_[i];
    const std::uint32_t kept = cached_of(c)[i];
    if (kept != p.count) lost_of_line(p.line, p.host, p.count - kept, hosts_->first_lost(p, kept));
  }
  if (!cached_.empty()) text += hosts_->clobbers(cached_, cached_of(c));
  for_each_drive(c, [&](std::size_t number, const persistent_drive& drive, choice of_drive) {
    for (const auto& [when, request] : lost_requests(drive, of_drive)) {
      const std::size_t units = units_of(drive, *request.first);
      text += lost();
      if (units > 1) text += std::to_string(request.second) + " of the " + std::to_string(units) + " units of ";
      text += "the " + in_words(*request.first);
      if (drives_.size() > 1) text += ", drive " + std::to_string(number);
    }
  });
  return text;
}

}  // namespace pmlab::verify
