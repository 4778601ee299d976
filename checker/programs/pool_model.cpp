// The durable content of a pool file, and the stores since.
#include "checker/programs/pool_model.hpp"

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_parts.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::programs {

pool_model::pool_model(const program_run& run) : run_(run), bytes_(run.pool_bytes()) { reset(); }

pool_model::~pool_model() {
  if (durable_ != nullptr) ::munmap(durable_, bytes_);
}

void pool_model::reset() {
  const descriptor file(::open(run_.base().c_str(), O_RDONLY | O_CLOEXEC));
  if (durable_ != nullptr) ::munmap(durable_, bytes_);
  durable_ = nullptr;
  void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(), 0);
  if (!file.is_open() || at == MAP_FAILED)
    throw error("cannot map the content of a pool of " + std::to_string(bytes_) + " bytes", "use a smaller pool");
  durable_ = static_cast<std::byte*>(at);
  hash_ = 0;
  pages_.clear();
  for_each_part_with_data(file.get(), bytes_, [this](std::uint64_t from, std::uint64_t part) {
    for (std::uint64_t p = from; p < from + part; p += page_bytes) pages_.insert(p / page_bytes);
  });
  for (const std::uint64_t page : pages_)
    for (std::uint64_t w = page * page_bytes; w < (page + 1) * page_bytes; w += 8) hash_ += hash_of_word(w, word_at(w));
  lines_.clear();
  pending_.clear();
  flushed_.clear();
  is_known_ = false;
}

std::uint64_t pool_model::word_at(std::uint64_t at) const {
  std::uint64_t word;
  std::memcpy(&word, durable_ + at, 8);
  return word;
}

bool pool_model::makes_durable(const program_run::step& s) const {
  if (s.head->what == event::sync) return !pending_.empty();
  std::vector<flushed> own;
  const std::vector<flushed>* of = &own;
  if (s.head->what == event::fence) {
    const auto found = flushed_.find(s.head->thread);
    if (found == flushed_.end()) return false;
    of = &found->second;
  } else if (s.head->what == event::complete_flush) {
    flush(*s.head, own);
  } else {
    return false;
  }
  return std::any_of(of->begin(), of->end(), [&](const flushed& f) {
    const auto l = pending_.find(f.line);
    return l != pending_.end() && f.stores > l->second->forgotten;
  });
}

void pool_model::flush(const entry& e, std::vector<flushed>& into) const {
  const std::uint64_t first = e.at / line_bytes * line_bytes;
  for (auto l = pending_.lower_bound(first); l != pending_.end() && l->first < e.at + e.length; ++l)
    into.push_back({l->first, l->second->forgotten + l->second->stores.size()});
}

void pool_model::persist(line& l, std::uint64_t until) {
  const auto count = static_cast<std::ptrdiff_t>(until - l.forgotten);
  for (auto s = l.stores.begin(); s != l.stores.begin() + count; ++s) {
    hash_ += hash_of_word(s->at, s->value) - hash_of_word(s->at, word_at(s->at));
    std::memcpy(durable_ + s->at, &s->value, 8);
    pages_.insert(s->at / page_bytes);
  }
  l.stores.erase(l.stores.begin(), l.stores.begin() + count);
  l.forgotten = until;
}

void pool_model::complete(const std::vector<flushed>& of) {
  for (const flushed& f : of) {
    const auto l = pending_.find(f.line);
    if (l == pending_.end() || f.stores <= l->second->forgotten) continue;
    persist(*l->second, f.stores);
    if (l->second->stores.empty()) pending_.erase(l);
  }
}

void pool_model::take(const program_run::step& s) {
  is_known_ = false;
  const entry& e = *s.head;
  switch (e.what) {
    case event::store:
    case event::streaming_store: {
      line& l = lines_[e.at];
      l.at = e.at;
      pending_[e.at] = &l;
      const std::span<const std::uint64_t> words = s.words();
      std::size_t next = 1;
      for (std::uint64_t bits = words[0]; bits != 0; bits &= bits - 1) {
        const auto w = static_cast<std::uint64_t>(std::countr_zero(bits));
        l.stores.push_back({e.at + w * 8, words[next++], &e});
      }
      if (e.what == event::streaming_store) flush(e, flushed_[e.thread]);
      break;
    }
    case event::flush: flush(e, flushed_[e.thread]); break;
    case event::complete_flush: {
      std::vector<flushed> own;
      flush(e, own);
      complete(own);
      break;
    }
    case event::fence:
      complete(flushed_[e.thread]);
      flushed_[e.thread].clear();
      break;
    case event::sync:
      for (const auto& [at, l] : pending_) persist(*l, l->forgotten + l->stores.size());
      pending_.clear();
      break;
    default: break;
  }
}

const std::vector<pool_model::line*>& pool_model::uncertain() {
  if (is_known_) return uncertain_;
  uncertain_.clear();
  for (const auto& [at, pending] : pending_) {
    line& l = *pending;
    uncertain_.push_back(&l);
    l.cuts.clear();
    for (std::uint32_t begin = 0, end = 0; begin < l.stores.size(); begin = end) {
      l.cuts.push_back({begin, 0});
      for (end = begin + 1; end < l.stores.size() && l.stores[end].by == l.stores[begin].by; ++end)
        l.cuts.push_back({end, 0});
      const std::uint32_t all = end - begin;
      for (std::uint32_t tail = 1; tail < all; ++tail) l.cuts.push_back({begin, tail});
    }
    l.cuts.push_back({static_cast<std::uint32_t>(l.stores.size()), 0});
  }
  is_known_ = true;
  return uncertain_;
}

std::map<std::uint64_t, std::uint64_t> pool_model::words_of(const line& l, const cut& c) {
  std::map<std::uint64_t, std::uint64_t> words;
  for (std::uint32_t i = 0; i < c.stores; ++i) words[l.stores[i].at] = l.stores[i].value;
  if (c.tail == 0) return words;
  std::uint32_t end = c.stores;
  while (end < l.stores.size() && l.stores[end].by == l.stores[c.stores].by) ++end;
  for (std::uint32_t i = end - c.tail; i < end; ++i) words[l.stores[i].at] = l.stores[i].value;
  return words;
}

std::uint64_t pool_model::hash(const choice& c) {
  std::uint64_t sum = hash_;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const line& l = *uncertain_[i];
    for (const auto& [at, value] : words_of(l, l.cuts[c[i]]))
      sum += hash_of_word(at, value) - hash_of_word(at, word_at(at));
  }
  return sum;
}

std::uint64_t pool_model::hash_of_all() {
  choice all;
  for (const line* l : uncertain()) all.push_back(static_cast<std::uint32_t>(l->cuts.size() - 1));
  return hash(all);
}

void pool_model::write(pool_image& to, const choice& c) {
  to.write(durable_, pages_);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const line& l = *uncertain_[i];
    for (const auto& [at, value] : words_of(l, l.cuts[c[i]])) to.put(at, value);
  }
}

std::vector<pool_model::word_store> pool_model::lost(const choice& c) {
  std::vector<word_store> all;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const line& l = *uncertain_[i];
    const cut& kept = l.cuts[c[i]];
    std::uint32_t end = kept.stores;
    while (kept.tail != 0 && end < l.stores.size() && l.stores[end].by == l.stores[kept.stores].by) ++end;
    for (std::uint32_t s = kept.stores; s < l.stores.size(); ++s)
      if (kept.tail == 0 || s < end - kept.tail || s >= end) all.push_back(l.stores[s]);
  }
  std::sort(all.begin(), all.end(), [](const word_store& a, const word_store& b) { return a.by < b.by; });
  return all;
}

}  // namespace pmlab::programs
