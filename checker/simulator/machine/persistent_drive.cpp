// A block drive whose durable content the machine tracks.
#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/simulator/machine/call_stack.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace pmlab::simulator {
namespace {

using blocks::operation;

// Enough to reach the caller of a helper for block devices.
constexpr std::size_t most_callers = 5;
constexpr std::uint64_t words_per_sector = sector_bytes / sizeof(std::uint64_t);

// 0 for zeros, so that a drive never written to has the hash 0.
std::uint64_t hash_of_sector(const std::byte* data) noexcept {
  std::array<std::uint64_t, words_per_sector> words;
  std::memcpy(words.data(), data, sizeof words);
  std::uint64_t any = 0;
  std::uint64_t h = golden_ratio;
  for (const std::uint64_t w : words) {
    any |= w;
    h = (h ^ w) * 0xd6e8feb86659fd93U;
    h ^= h >> 32;
  }
  return any == 0 ? 0 : h;
}

// The share of a sector in the hash of a content.
std::uint64_t share(std::size_t sector, std::uint64_t hash) noexcept {
  return hash == 0 ? 0 : mix_bits(hash ^ (sector + 1) * golden_ratio);
}

bool changes_content(operation what) noexcept { return blocks::writes(what) || what == operation::discard; }

}  // namespace

persistent_drive::persistent_drive(const blocks::geometry& shape)
    : shape_(shape),
      current_(shape.bytes()),
      durable_(shape.bytes()),
      durable_hashes_(shape.bytes() / sector_bytes),
      durable_effects_(shape.bytes() / sector_bytes),
      units_((shape.bytes() + shape.unit_bytes() - 1) / shape.unit_bytes()) {
  blocks::check_geometry(shape, "simulated");
}

// `work(unit, first sector, sectors, index of the first one among the request's)`.
template <class Work>
void persistent_drive::for_each_unit(const drive_request& r, Work&& work) const {
  const std::size_t first = r.asked.first * sectors_of_block();
  const std::size_t end = first + r.asked.count * sectors_of_block();
  for (std::size_t at = first; at < end;) {
    const std::size_t unit = at / sectors_of_unit();
    const std::size_t next = std::min(end, (unit + 1) * sectors_of_unit());
    work(static_cast<std::uint32_t>(unit), at, static_cast<std::uint32_t>(next - at), at - first);
    at = next;
  }
}

// ---- requests ----

void persistent_drive::capture(drive_request& r) {
  const std::size_t bytes = std::size_t{r.asked.count} * shape_.block_bytes;
  if (r.asked.what == operation::read) {
    r.data.resize(bytes);
  } else if (blocks::writes(r.asked.what)) {
    r.data.assign(r.asked.data, r.asked.data + bytes);
  } else if (r.asked.what == operation::discard) {
    r.data.resize(2 * bytes);
    for (std::size_t at = bytes; at < 2 * bytes; at += sizeof(std::uint64_t)) {
      const std::uint64_t garbage = random_.next();
      std::memcpy(r.data.data() + at, &garbage, sizeof garbage);
    }
    r.kept_variant = static_cast<unsigned>(random_.below(3));
  }
  if (!changes_content(r.asked.what)) return;
  for (std::size_t at = 0; at < r.data.size(); at += sector_bytes)
    r.hashes.push_back(hash_of_sector(r.data.data() + at));
}

void persistent_drive::add_versions(const std::shared_ptr<drive_request>& r) {
  for_each_unit(*r, [&](std::uint32_t number, std::size_t first, std::uint32_t sectors, std::size_t in_request) {
    uncertain_unit& u = units_[number];
    if (u.versions.empty()) {
      u.position = static_cast<std::uint32_t>(uncertain_.size());
      uncertain_.push_back(number);
    }
    if (blocks::writes(r->asked.what)) {
      u.versions.push_back({r, first, sectors, in_request, 0, 0});
    } else {
      u.versions.push_back({r, first, sectors, in_request, 1, 0});
      u.versions.push_back({r, first, sectors, in_request + r->data.size() / sector_bytes / 2, 2, 0});
    }
  });
}

void persistent_drive::submit(queue& q, const blocks::request& r, const void* caller) {
  const auto made = std::make_shared<drive_request>();
  made->asked = r;
  if (r.what == operation::flush) made->asked.count = 0;
  made->caller = caller;
  if (observer_ != nullptr) made->callers = callers_behind(caller, most_callers);
  made->submitted = ++events_;
  capture(*made);
  q.in_flight.push_back(made);
  in_flight_.emplace_back(&q, made);
  if (!changes_content(r.what)) return;
  add_versions(made);
  if (observer_ == nullptr) return;
  const bool one = blocks::writes(r.what) && std::size_t{r.count} * shape_.block_bytes <= shape_.unit_bytes();
  const auto unit = static_cast<std::uint32_t>(r.first * sectors_of_block() / sectors_of_unit());
  observer_->after_submission(*this, one ? unit : nowhere);
}

void persistent_drive::progress() {
  if (in_flight_.empty()) return;
  if (random_.one_in(2)) {
    const auto number = static_cast<std::uint32_t>(random_.below(units_.size()));
    uncertain_unit& u = units_[number];
    for (std::size_t i = 0; i < u.versions.size(); ++i)
      if (u.versions[i].effect == 0 && random_.one_in(2)) {
        take_effect(number, i);
        break;
      }
  }
  if (random_.one_in(4)) complete(in_flight_[random_.below(in_flight_.size())].second);
}

void persistent_drive::complete_one(queue& q) { complete(q.in_flight[random_.below(q.in_flight.size())]); }

void persistent_drive::complete(queue& q, std::uint64_t tag) {
  complete(*std::find_if(q.in_flight.begin(), q.in_flight.end(), [&](const auto& r) { return r->asked.tag == tag; }));
}

void persistent_drive::fail(queue& q, std::uint64_t tag) {
  const auto place =
      std::find_if(q.in_flight.begin(), q.in_flight.end(), [&](const auto& r) { return r->asked.tag == tag; });
  const std::shared_ptr<drive_request> r = *place;
  q.in_flight.erase(place);
  std::erase_if(in_flight_, [&](const auto& f) { return f.second == r; });
  if (changes_content(r->asked.what)) take_effect(*r);
  r->failed = true;
  r->completed = ++events_;
}

// The version becomes the current content of its sectors.
void persistent_drive::take_effect(std::uint32_t unit, std::size_t version) {
  std::vector<unit_version>& all = units_[unit].versions;
  unit_version now = all[version];
  now.effect = ++events_;
  const bool is_current = now.variant == now.of->kept_variant;
  for (std::uint32_t s = 0; is_current && s < now.sectors; ++s)
    std::memcpy(current_.data() + (now.first + s) * sector_bytes, content(now, s), sector_bytes);
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(version));
  const auto place = std::find_if(all.begin(), all.end(), [](const unit_version& v) { return v.effect == 0; });
  all.insert(place, std::move(now));
}

void persistent_drive::take_effect(const drive_request& r) {
  for_each_unit(r, [&](std::uint32_t number, std::size_t, std::uint32_t, std::size_t) {
    for (std::size_t i = 0; i < units_[number].versions.size(); ++i) {
      const unit_version& v = units_[number].versions[i];
      // An effect moves versions: look at all of them again.
      if (v.of.get() == &r && v.effect == 0) {
        take_effect(number, i);
        i = static_cast<std::size_t>(-1);
      }
    }
  });
}

// A read sees of each unit the content before or after each write in flight.
void persistent_drive::answer(drive_request& r) {
  for_each_unit(r, [&](std::uint32_t number, std::size_t first, std::uint32_t sectors, std::size_t in_request) {
    std::vector<unit_version>& all = units_[number].versions;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].effect == 0 && random_.one_in(2)) take_effect(number, i);
    std::memcpy(r.data.data() + in_request * sector_bytes, current_.data() + first * sector_bytes,
                sectors * sector_bytes);
  });
}

void persistent_drive::complete(const std::shared_ptr<drive_request>& given) {
  const std::shared_ptr<drive_request> r = given;
  const auto place = std::find_if(in_flight_.begin(), in_flight_.end(), [&](const auto& f) { return f.second == r; });
  queue& q = *place->first;
  in_flight_.erase(place);
  q.in_flight.erase(std::find(q.in_flight.begin(), q.in_flight.end(), r));
  bool more_is_durable = false;
  if (r->asked.what == operation::read) {
    answer(*r);
    std::memcpy(r->asked.data, r->data.data(), r->data.size());
    if (on_read) on_read(r->asked.data, r->data.size(), r->caller);
  } else if (r->asked.what == operation::flush) {
    more_is_durable = make_durable_before(r->submitted);
  } else {
    if (on_misuse && blocks::writes(r->asked.what) && std::memcmp(r->data.data(), r->asked.data, r->data.size()) != 0)
      on_misuse("the data of a write changed before the write completed; the write was submitted at " +
                code_address(r->caller));
    take_effect(*r);
    r->completed = ++events_;
    more_is_durable = !shape_.volatile_cache || r->asked.what == operation::write_durable;
    if (more_is_durable) make_durable(*r);
    for_each_unit(*r, [&](std::uint32_t number, std::size_t, std::uint32_t, std::size_t) {
      drop(number, [](const unit_version&) { return false; });
    });
  }
  r->completed = ++events_;
  q.done.push_back({r->asked.tag, std::errc{}});
  if (more_is_durable && observer_ != nullptr) observer_->after_fence();
}

// ---- durability ----

void persistent_drive::store_durably(const unit_version& v) {
  if (v.variant != v.of->kept_variant) return;
  for (std::uint32_t s = 0; s < v.sectors; ++s) {
    const std::size_t sector = v.first + s;
    if (v.effect < durable_effects_[sector]) continue;
    durable_effects_[sector] = v.effect;
    std::memcpy(durable_.data() + sector * sector_bytes, content(v, s), sector_bytes);
    const std::uint64_t hash = v.of->hashes[v.in_request + s];
    durable_hash_ ^= share(sector, durable_hashes_[sector]) ^ share(sector, hash);
    durable_hashes_[sector] = hash;
  }
}

// Removes these versions of a unit, and those that no crash can bring back.
void persistent_drive::drop(std::uint32_t number, const std::function<bool(const unit_version&)>& which) {
  uncertain_unit& u = units_[number];
  if (u.versions.empty()) return;
  std::erase_if(u.versions, [&](const unit_version& v) {
    if (which(v)) return true;
    for (std::uint32_t s = 0; s < v.sectors; ++s)
      if (!is_superseded(v, s)) return false;
    return true;
  });
  if (!u.versions.empty()) return;
  uncertain_[u.position] = uncertain_.back();
  units_[uncertain_[u.position]].position = u.position;
  uncertain_.pop_back();
}

void persistent_drive::make_durable(const drive_request& r) {
  for_each_unit(r, [&](std::uint32_t number, std::size_t, std::uint32_t, std::size_t) {
    for (const unit_version& v : units_[number].versions)
      if (v.of.get() == &r) store_durably(v);
    drop(number, [&](const unit_version& v) { return v.of.get() == &r; });
  });
}

// All that had completed before this event. False: nothing had.
bool persistent_drive::make_durable_before(std::uint64_t event) {
  const auto is_covered = [&](const unit_version& v) {
    return v.of->completed != 0 && v.of->completed < event && !v.of->failed;
  };
  bool any = false;
  const std::vector<std::uint32_t> numbers = uncertain_;
  for (const std::uint32_t number : numbers) {
    const std::size_t before = units_[number].versions.size();
    for (const unit_version& v : units_[number].versions)
      if (is_covered(v)) store_durably(v);
    drop(number, is_covered);
    any = any || units_[number].versions.size() != before;
  }
  return any;
}

// ---- the states that a crash may leave ----

std::uint64_t persistent_drive::hash_with(std::uint64_t hash, std::uint32_t number, std::size_t versions) const {
  const std::vector<unit_version>& all = units_[number].versions;
  const std::size_t first = number * sectors_of_unit();
  const std::size_t end = std::min(first + sectors_of_unit(), sectors());
  for (std::size_t sector = first; sector < end; ++sector) {
    // The last version of this sector counts.
    for (std::size_t i = versions; i > 0; --i) {
      const unit_version& v = all[i - 1];
      if (sector - v.first >= v.sectors || is_superseded(v, sector - v.first)) continue;
      hash ^= share(sector, durable_hashes_[sector]) ^ share(sector, v.of->hashes[v.in_request + sector - v.first]);
      break;
    }
  }
  return hash;
}

void persistent_drive::find_image(std::span<const std::byte*> contents, std::span<const std::uint32_t> choice) const {
  for (std::size_t s = 0; s < contents.size(); ++s) contents[s] = durable_.data() + s * sector_bytes;
  for (std::size_t i = 0; i < choice.size(); ++i)
    for (std::size_t k = 0; k < choice[i]; ++k) {
      const unit_version& v = units_[uncertain_[i]].versions[k];
      for (std::uint32_t s = 0; s < v.sectors; ++s)
        if (!is_superseded(v, s)) contents[v.first + s] = content(v, s);
    }
}

void persistent_drive::write_image(std::byte* target, std::span<const std::uint32_t> choice) const {
  std::vector<const std::byte*> contents(sectors());
  find_image(contents, choice);
  for (std::size_t s = 0; s < contents.size(); ++s) std::memcpy(target + s * sector_bytes, contents[s], sector_bytes);
}

void persistent_drive::restore(const std::byte* image) {
  for (const std::uint32_t number : uncertain_) units_[number].versions.clear();
  uncertain_.clear();
  in_flight_.clear();
  events_ = 0;
  durable_hash_ = 0;
  std::fill(durable_effects_.begin(), durable_effects_.end(), 0);
  if (image != nullptr)
    std::memcpy(durable_.data(), image, durable_.size());
  else
    std::memset(durable_.data(), 0, durable_.size());
  current_ = durable_;
  for (std::size_t s = 0; s < sectors(); ++s) {
    durable_hashes_[s] = hash_of_sector(durable_.data() + s * sector_bytes);
    durable_hash_ ^= share(s, durable_hashes_[s]);
  }
}

}  // namespace pmlab::simulator
