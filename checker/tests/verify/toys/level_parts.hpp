// Two levels of buckets, as Level hashing has them: the part of the toy level_table that has no defect.
#pragma once

#include "small_map.hpp"

#include <array>
#include <utility>

namespace pmlab::toys {

// The tokens are on another line than the items.
struct alignas(media::cache_line_bytes) level_bucket {
  static constexpr std::size_t slots = 4;
  struct item {
    word key{0}, value{0};
  };
  std::array<word, 8> token{};
  std::array<item, slots> items{};
};

template <class Medium>
class level_parts {
 public:
  struct alignas(media::cache_line_bytes) area {
    word log2{0};  // binary logarithm of the buckets of the top level; 0: there are none yet
    std::array<word, 2> level{};
    std::array<word, 2> seed{};  // seed of a level's hashes
    std::array<word, 3> unused{};
  };
  static constexpr bool root_is_durable() { return true; }

  level_parts(Medium& medium, area& a) : medium_(medium), area_(a) {
    if (get(a.log2) != 0) return;
    publication change(medium_);
    bucket* const top = make(change, 2);
    bucket* const bottom = make(change, 1);
    if (top != nullptr && bottom != nullptr) publish(change, {top, 0}, {bottom, 0}, 2);
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    const place p = search(key);
    return p.in == nullptr ? std::nullopt : std::optional(get(p.in->items[p.slot].value));
  }
  template <class Function>
  void for_each(Function&& function) {
    for (std::size_t l = 0; l < 2; ++l) for_each_in(l, function);
  }
  [[nodiscard]] std::uint64_t held() { return get(area_.log2) == 0 ? 0 : (size(0) + size(1)) * sizeof(bucket); }

 protected:
  using publication = typename Medium::publication;
  using bucket = level_bucket;
  struct place {
    bucket* in = nullptr;
    std::size_t slot = 0;
    std::uint64_t candidate = 0;
  };
  struct level_of_buckets {
    bucket* first;
    std::uint64_t seed;
  };

  [[nodiscard]] level_of_buckets level(std::size_t l) {
    return {medium_.resolve(media::pointer<bucket>(get(area_.level[l]))), get(area_.seed[l])};
  }
  [[nodiscard]] std::size_t size(std::size_t l) { return std::size_t{1} << (get(area_.log2) - l); }
  static bucket& choose(level_of_buckets of, std::size_t buckets, std::uint64_t key, std::uint64_t c) {
    return of.first[hash_of(key, of.seed * 2 + c) % buckets];
  }
  [[nodiscard]] bucket& candidate(std::size_t l, std::uint64_t key, std::uint64_t c) {
    return choose(level(l), size(l), key, c);
  }
  static std::size_t free_slot(const bucket& b) {
    std::size_t s = 0;
    while (s < bucket::slots && get(b.token[s]) != 0) ++s;
    return s;
  }

  place search(std::uint64_t key) {
    for (std::size_t l = 0; l < 2 && get(area_.log2) != 0; ++l)
      for (std::uint64_t c = 0; c < 2; ++c) {
        bucket& b = candidate(l, key, c);
        for (std::size_t s = 0; s < bucket::slots; ++s)
          if (get(b.token[s]) != 0 && get(b.items[s].key) == key) return {&b, s, c};
      }
    return {};
  }

  bucket* make(publication& change, std::size_t log2) {
    void* const block = change.allocate(sizeof(bucket) << log2, alignof(bucket));
    return block == nullptr ? nullptr : ::new (block) bucket[std::size_t{1} << log2];
  }

  // The entries of a level, in new buckets that nothing leads to yet: with a seed by which they fit.
  level_of_buckets copy(std::size_t from, bucket* to, std::size_t buckets) {
    for (std::uint64_t seed = 0; seed < 16; ++seed) {
      for (std::size_t i = 0; i < buckets; ++i)
        for (std::size_t s = 0; s < bucket::slots; ++s) put(to[i].token[s], 0);
      const level_of_buckets made{to, seed};
      bool fits = true;
      for_each_in(from, [&](std::uint64_t key, std::uint64_t value) {
        bucket& first = choose(made, buckets, key, 0);
        bucket& into = free_slot(first) != bucket::slots ? first : choose(made, buckets, key, 1);
        const std::size_t t = free_slot(into);
        fits = fits && t != bucket::slots;
        if (!fits) return;
        put(into.items[t].key, key);
        put(into.items[t].value, value);
        put(into.token[t], 1);
      });
      if (!fits) continue;
      medium_.flush(to, buckets * sizeof(bucket));
      return made;
    }
    return {nullptr, 0};
  }

  // (L1) < (L2): the buckets are durable before the table names them, all of it at once.
  void publish(publication& change, level_of_buckets top, level_of_buckets bottom, std::size_t log2) {
    if (get(area_.log2) == 0) {
      medium_.flush(top.first, sizeof(bucket) << log2);
      medium_.flush(bottom.first, sizeof(bucket) << (log2 - 1));
    }
    medium_.fence();  // (L1)
    change.store(area_.level[0], medium_.locate(top.first).word());
    change.store(area_.level[1], medium_.locate(bottom.first).word());
    change.store(area_.seed[0], top.seed);
    change.store(area_.seed[1], bottom.seed);
    change.store(area_.log2, log2);
    change.commit();  // (L2)
  }

  template <class Function>
  void for_each_in(std::size_t l, Function&& function) {
    for (std::size_t i = 0; get(area_.log2) != 0 && i < size(l); ++i)
      for (std::size_t s = 0; s < bucket::slots; ++s)
        if (const bucket& b = level(l).first[i]; get(b.token[s]) != 0)
          function(get(b.items[s].key), get(b.items[s].value));
  }

  Medium& medium_;
  area& area_;
};

}  // namespace pmlab::toys
