// Memory whose durable content the machine tracks.
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/pages.hpp"
#include "checker/simulator/machine/torn_store.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <algorithm>
#include <cstring>

namespace pmlab::simulator {
namespace {

// The share of one word in the hash of a content; 0 for a zero, so that memory never touched has no share.
std::uint64_t hash_of(std::uint32_t line, std::uint32_t word, std::uint64_t value) noexcept {
  if (value == 0) return 0;
  std::uint64_t h = value ^ ((std::uint64_t{line} * words_per_line + word + 1) * golden_ratio);
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93U;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93U;
  return h ^ (h >> 32);
}

enum class change_kind : unsigned { keep = 0, store = 1, release = 2 };

// The address of the next memory; an unmapped page follows each. Each begins at a huge page, so that an aligned object
// has the same offset from its start, whichever memories were created before.
std::uintptr_t take_address(std::size_t bytes) noexcept {
  static std::uintptr_t next = persistent_memory::area_start;
  const std::uintptr_t address = next;
  next += (bytes + media::huge_page_bytes) & ~(media::huge_page_bytes - 1);
  return address;
}

}  // namespace

persistent_memory::persistent_memory(std::size_t bytes)
    : memory_(bytes, take_address(bytes)),
      durable_(bytes),
      table_(bytes / media::cache_line_bytes * sizeof(std::uint32_t)),
      states_(bytes / media::cache_line_bytes),
      id_of_line_(reinterpret_cast<std::uint32_t*>(table_.start())),
      blocks_(first_block, bytes) {}

void persistent_memory::keep_log(bool on) {
  if (!on)
    for (const unpersisted_line& l : logs_)
      if (!l.stores.empty()) make_durable(l.number, l.dropped + static_cast<std::uint32_t>(l.stores.size()));
  if (on && !logging_) std::memcpy(durable_.start(), memory_.start(), used_);
  logging_ = on;
}

unpersisted_line& persistent_memory::open_log(std::uint32_t line) {
  if (id_of_line_[line] != 0) return logs_[id_of_line_[line] - 1];
  std::uint32_t id;
  if (free_logs_.empty()) {
    id = static_cast<std::uint32_t>(logs_.size());
    logs_.emplace_back();
  } else {
    id = free_logs_.back();
    free_logs_.pop_back();
  }
  id_of_line_[line] = id + 1;
  unpersisted_line& l = logs_[id];
  l.number = line;
  l.dropped = 0;
  l.last_flush = 0;
  l.position = nowhere;
  std::memcpy(l.newest.data(), durable_words(line), media::cache_line_bytes);
  if (state_of(line) != line_state::reserved) {
    l.position = static_cast<std::uint32_t>(unpersisted_.size());
    unpersisted_.push_back(id);
  }
  return l;
}

void persistent_memory::store_word(std::uint32_t line, std::uint32_t word, const void* caller) {
  const std::uint64_t value = memory_words(line)[word];
  use_up_to((std::size_t{line} + 1) * media::cache_line_bytes);
  if (!logging_) return;
  const std::uint64_t known =
      id_of_line_[line] != 0 ? logs_[id_of_line_[line] - 1].newest[word] : durable_words(line)[word];
  if (known == value) return;
  unpersisted_line& l = open_log(line);
  l.newest[word] = value;
  const bool hot = !keeps_every_store_ && l.stores.size() >= longest_log && l.stores.back().word == word &&
                   l.last_flush < l.dropped + l.stores.size();
  // A word that is written again and again without a flush (a lock) keeps its last value only: the states in between
  // differ in nothing else.
  if (hot)
    l.stores.back() = {value, caller, word};
  else
    l.stores.push_back({value, caller, word});
  if (observer_ != nullptr && l.position != nowhere) observer_->after_store(l);
}

void persistent_memory::stored(std::uintptr_t address, std::size_t bytes, const void* caller) {
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(start());
  const std::size_t first = offset / sizeof(std::uint64_t);
  const std::size_t last = (offset + bytes - 1) / sizeof(std::uint64_t);
  for_each_torn_word(first, last, tears_, [&](std::size_t n) {
    store_word(static_cast<std::uint32_t>(n / words_per_line), static_cast<std::uint32_t>(n % words_per_line), caller);
  });
}

bool persistent_memory::is_known(std::uintptr_t address, std::size_t bytes) const noexcept {
  if (!logging_) return false;
  const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(start());
  for (std::size_t n = offset / sizeof(std::uint64_t); n <= (offset + bytes - 1) / sizeof(std::uint64_t); ++n) {
    const auto line = static_cast<std::uint32_t>(n / words_per_line);
    const std::size_t word = n % words_per_line;
    const std::uint64_t known =
        id_of_line_[line] != 0 ? logs_[id_of_line_[line] - 1].newest[word] : durable_words(line)[word];
    if (known != memory_words(line)[word]) return false;
  }
  return true;
}

void persistent_memory::flushed(std::uintptr_t address, flush_list& by) {
  const auto line =
      static_cast<std::uint32_t>((address - reinterpret_cast<std::uintptr_t>(start())) / media::cache_line_bytes);
  if (id_of_line_[line] == 0) return;
  unpersisted_line& l = logs_[id_of_line_[line] - 1];
  l.last_flush = l.dropped + static_cast<std::uint32_t>(l.stores.size());
  by.push_back({line, l.last_flush});
}

void persistent_memory::fenced(flush_list& by) {
  const std::uint64_t before = durable_version_;
  if (observer_ != nullptr && !by.empty()) observer_->before_durable();
  for (const flushed_line& f : by) make_durable(f.line, f.stores);
  by.clear();
  if (durable_version_ != before && observer_ != nullptr) observer_->after_fence();
}

std::string persistent_memory::publish(std::span<const pmlab_change> changes) {
  std::string wrong;
  bool is_alone = true;  // the lines have no other stores that a crash may lose
  if (observer_ != nullptr) observer_->before_durable();
  for (const pmlab_change& c : changes) {
    const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(c.address) - start());
    switch (static_cast<change_kind>(c.kind)) {
      case change_kind::keep:
        set_state(offset, blocks_.reserved_bytes(offset), line_state::live);
        blocks_.keep(offset);
        break;
      case change_kind::store: publish_store(static_cast<std::uint64_t*>(c.address), c.value); break;
      case change_kind::release:
        if (std::string why = blocks_.release(offset, c.value); !why.empty())
          wrong = std::move(why);
        else
          set_state(offset, c.value, line_state::free);
        break;
    }
  }
  const auto for_each_line = [&](auto&& visit) {
    for (const pmlab_change& c : changes)
      if (static_cast<change_kind>(c.kind) == change_kind::store) visit(line_of(c.address));
  };
  for_each_line([&](std::uint32_t line) { is_alone = is_alone && !has_uncertain_words(line); });
  if (observer_ != nullptr && wrong.empty() && !is_alone) {
    ++durable_version_;
    observer_->amid_publication();
    observer_->before_durable();
  }
  for_each_line([&](std::uint32_t line) {
    if (const unpersisted_line* l = log_of(line); l != nullptr)
      make_durable(line, l->dropped + static_cast<std::uint32_t>(l->stores.size()));
  });
  ++durable_version_;
  if (observer_ != nullptr && wrong.empty()) observer_->after_fence();
  return wrong;
}

void persistent_memory::set_state(std::size_t offset, std::size_t bytes, line_state state) {
  const std::size_t first = offset / media::cache_line_bytes;
  const std::size_t end = media::whole_lines(offset + bytes) / media::cache_line_bytes;
  std::memset(states_.start() + first, static_cast<int>(state), end - first);
  if (state != line_state::live || !logging_) return;
  for (std::size_t line = first; line < end; ++line) {
    if (id_of_line_[line] == 0) continue;
    const std::uint32_t id = id_of_line_[line] - 1;
    if (logs_[id].position != nowhere) continue;
    logs_[id].position = static_cast<std::uint32_t>(unpersisted_.size());
    unpersisted_.push_back(id);
  }
}

void persistent_memory::restore_blocks(const block_table::extents& blocks, std::size_t top) {
  blocks_.restore(blocks, top);
  for (const auto& [offset, bytes] : blocks) set_state(offset, bytes, line_state::live);
}

void persistent_memory::cancel(void* block) {
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(block) - start());
  set_state(offset, blocks_.reserved_bytes(offset), line_state::free);
  blocks_.cancel(offset);
}

void persistent_memory::publish_store(std::uint64_t* word, std::uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  if (!logging_) return;
  const std::uint32_t line = line_of(word);
  const auto index = static_cast<std::uint32_t>(word - memory_words(line));
  store_durably(line, index, value);
  if (id_of_line_[line] == 0) return;
  // Whatever of the line's stores survives, recovery writes the word again.
  unpersisted_line& l = logs_[id_of_line_[line] - 1];
  l.newest[index] = value;
  for (logged_store& s : l.stores)
    if (s.word == index) s.value = value;
}

bool persistent_memory::has_uncertain_words(std::uint32_t line) const noexcept {
  const unpersisted_line* const l = log_of(line);
  return l != nullptr &&
         std::ranges::any_of(l->stores, [&](const logged_store& s) { return s.value != durable_words(line)[s.word]; });
}

void persistent_memory::store_durably(std::uint32_t line, std::uint32_t word, std::uint64_t value) {
  std::uint64_t& target = durable_words(line)[word];
  if (durable_lines_ != nullptr) durable_lines_->push_back(line);
  durable_hash_ ^= hash_of(line, word, target) ^ hash_of(line, word, value);
  target = value;
}

void persistent_memory::write_line(std::uint32_t line, const std::array<std::uint64_t, words_per_line>& words) {
  if (observer_ != nullptr) observer_->before_durable();
  for (std::uint32_t w = 0; w < words_per_line; ++w)
    if (durable_words(line)[w] != words[w]) store_durably(line, w, words[w]);
  ++durable_version_;
  if (observer_ != nullptr) observer_->after_fence();
}

void persistent_memory::make_durable(std::uint32_t line, std::uint32_t stores) {
  if (id_of_line_[line] == 0) return;
  const std::uint32_t id = id_of_line_[line] - 1;
  unpersisted_line& l = logs_[id];
  if (stores <= l.dropped) return;
  const std::size_t count = std::min<std::size_t>(stores - l.dropped, l.stores.size());
  for (std::size_t i = 0; i < count; ++i) store_durably(line, l.stores[i].word, l.stores[i].value);
  l.stores.erase(l.stores.begin(), l.stores.begin() + static_cast<std::ptrdiff_t>(count));
  l.dropped += static_cast<std::uint32_t>(count);
  ++durable_version_;
  if (l.stores.empty()) close_log(id);
}

// REQUIRES: it has no stores.
void persistent_memory::close_log(std::uint32_t id) {
  const unpersisted_line& l = logs_[id];
  if (l.position != nowhere) {
    unpersisted_[l.position] = unpersisted_.back();
    logs_[unpersisted_[l.position]].position = l.position;
    unpersisted_.pop_back();
  }
  id_of_line_[l.number] = 0;
  free_logs_.push_back(id);
}

void persistent_memory::lose_stores(std::uint32_t line, std::size_t kept) {
  if (id_of_line_[line] == 0) return;
  const std::uint32_t id = id_of_line_[line] - 1;
  make_durable(line, logs_[id].dropped + static_cast<std::uint32_t>(kept));
  if (id_of_line_[line] != 0) {
    logs_[id].stores.clear();
    close_log(id);
  }
  std::memcpy(memory_words(line), durable_words(line), media::cache_line_bytes);
}

std::uint64_t persistent_memory::hash_with(std::uint64_t hash, const unpersisted_line& line,
                                           std::size_t stores) const noexcept {
  std::array<std::uint64_t, words_per_line> content;
  std::memcpy(content.data(), durable_words(line.number), sizeof content);
  for (std::size_t i = 0; i < stores; ++i) {
    const logged_store& s = line.stores[i];
    hash ^= hash_of(line.number, s.word, content[s.word]) ^ hash_of(line.number, s.word, s.value);
    content[s.word] = s.value;
  }
  return hash;
}

std::uint64_t persistent_memory::hash_with(std::uint64_t hash, std::uint32_t line,
                                           const std::array<std::uint64_t, words_per_line>& words) const noexcept {
  for (std::uint32_t w = 0; w < words_per_line; ++w)
    if (words[w] != durable_words(line)[w])
      hash ^= hash_of(line, w, durable_words(line)[w]) ^ hash_of(line, w, words[w]);
  return hash;
}

void persistent_memory::write_image(std::byte* target, std::span<const std::uint32_t> choice) const noexcept {
  std::memcpy(target, durable_.start(), used_);
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const unpersisted_line& l = logs_[unpersisted_[i]];
    auto* const words = reinterpret_cast<std::uint64_t*>(target) + std::size_t{l.number} * words_per_line;
    for (std::size_t s = 0; s < choice[i]; ++s) words[l.stores[s].word] = l.stores[s].value;
  }
}

std::vector<waiting_line> persistent_memory::waiting() const {
  std::vector<waiting_line> lines;
  for (const std::uint32_t id : unpersisted_) lines.push_back({logs_[id].number, logs_[id].stores});
  return lines;
}

void persistent_memory::store_again(std::span<const waiting_line> lines) {
  for (const waiting_line& l : lines)
    for (const logged_store& s : l.stores) {
      memory_words(l.number)[s.word] = s.value;
      store_word(l.number, s.word, s.caller);
    }
}

void persistent_memory::crash(std::span<const std::uint32_t> choice) {
  for (const unpersisted_line& l : logs_) {
    if (l.stores.empty()) continue;
    std::uint64_t* const words = memory_words(l.number);
    std::memcpy(words, durable_words(l.number), media::cache_line_bytes);
    if (l.position == nowhere) continue;
    for (std::size_t s = 0; s < choice[l.position]; ++s) words[l.stores[s].word] = l.stores[s].value;
  }
}

void persistent_memory::restore(const std::byte* image, std::size_t used) {
  free_logs_.clear();
  for (std::uint32_t id = 0; id < logs_.size(); ++id) {
    id_of_line_[logs_[id].number] = 0;
    logs_[id].stores.clear();
    free_logs_.push_back(id);
  }
  unpersisted_.clear();
  clear(states_, 0, used_ / media::cache_line_bytes);
  const std::size_t dirty = std::max(used, used_);
  clear(durable_, used, dirty);
  // Beyond `used_` there may be stores that nothing logged: of a check at the end of a run, say.
  clear(memory_, used, dirty);
  clear(memory_, dirty, bytes());
  if (used != 0) {
    std::memcpy(memory_.start(), image, used);
    std::memcpy(durable_.start(), image, used);
  }
  used_ = std::max(used, first_block);
  ++durable_version_;
}

void persistent_memory::reset() {
  keep_log(true);
  restore(nullptr, 0);
  blocks_ = block_table(first_block, bytes());
  blocks_.place_small_blocks_at(small_blocks_at_);
  limit_ = {};
  durable_hash_ = 0;
  tears_ = 0;
}

void* persistent_memory::reserve(std::size_t bytes, std::size_t alignment, bool low) {
  if (limit_.refuses(bytes, blocks_.live_bytes())) return nullptr;
  const std::size_t offset = low ? blocks_.reserve_low(bytes, alignment) : blocks_.reserve(bytes, alignment);
  if (offset == 0) return nullptr;
  const std::size_t end = media::whole_lines(offset + bytes);
  // A block that was never used before holds garbage, durably: if code forgets to write a field of a new object, or to
  // flush it, recovery reads that garbage after the crash. No object is as large as a block of gigabytes, of which a
  // measurement of memory touches a part: the rest of it is zero, and needs no pages.
  constexpr std::size_t most_garbage = std::size_t{16} << 20;
  const std::size_t garbage_end = std::min(end, offset + most_garbage);
  auto* const memory = reinterpret_cast<std::uint64_t*>(start());
  auto* const durable = reinterpret_cast<std::uint64_t*>(durable_.start());
  for (std::size_t word = std::max(used_, first_block) / sizeof(std::uint64_t);
       word < garbage_end / sizeof(std::uint64_t); ++word) {
    const std::uint64_t garbage = (word * golden_ratio) | 1;
    memory[word] = garbage;
    if (!logging_) continue;
    durable[word] = garbage;
    if (durable_lines_ != nullptr) durable_lines_->push_back(static_cast<std::uint32_t>(word / words_per_line));
    durable_hash_ ^= hash_of(static_cast<std::uint32_t>(word / words_per_line),
                             static_cast<std::uint32_t>(word % words_per_line), garbage);
  }
  use_up_to(end);
  set_state(offset, bytes, line_state::reserved);
  return start() + offset;
}

std::string persistent_memory::last_store_to(std::uint32_t line) const {
  if (id_of_line_[line] == 0 || logs_[id_of_line_[line] - 1].stores.empty()) return {};
  return "; the last store to its line that was logged is at " +
         code_address(logs_[id_of_line_[line] - 1].stores.back().caller);
}

std::string persistent_memory::audit() const {
  if (!logging_) return {};
  const auto lines = static_cast<std::uint32_t>(used_ / media::cache_line_bytes);
  const std::vector<bool> touched = touched_pages(memory_, used_);
  for (std::uint32_t line = 0; line < lines; ++line) {
    if (!touched[line * media::cache_line_bytes / page_bytes]) {
      line |= page_bytes / media::cache_line_bytes - 1;  // the last one of its page
      continue;
    }
    const std::uint64_t* const wanted =
        id_of_line_[line] != 0 ? logs_[id_of_line_[line] - 1].newest.data() : durable_words(line);
    if (std::memcmp(wanted, memory_words(line), media::cache_line_bytes) == 0) continue;
    for (std::uint32_t word = 0; word < words_per_line; ++word)
      if (wanted[word] != memory_words(line)[word])
        return "a store bypassed the instrument: offset " +
               std::to_string(std::size_t{line} * media::cache_line_bytes + word * sizeof(std::uint64_t)) +
               " holds a value that no logged store wrote" + last_store_to(line);
  }
  return {};
}

}  // namespace pmlab::simulator
