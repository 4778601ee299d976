// A toy: Level hashing with the defects of its first implementation, as Witcher's list has them (7 to 23): a token for
// each slot, updates out of place, items that move within a level and from the bottom level to the top, growing and
// shrinking.
#include "level_parts.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

// Numbers 1 to 17: the names are in ../scoreboard/bugs.toml.
enum defect : int {
  in_first = 1,
  in_second,
  update_first,
  move_copy,
  after_move,
  up_first,
  up_second,
  after_up_first,
  after_up_second,
  update_second,
  expand,
  shrink,
  move_tokens,
  up_first_tokens,
  up_second_tokens,
  update_first_tokens,
  update_second_tokens
};

template <class Medium>
class level_body : public level_parts<Medium> {
  using parts = level_parts<Medium>;
  using parts::area_, parts::medium_, parts::size, parts::level, parts::candidate, parts::free_slot, parts::search;
  using typename parts::bucket, typename parts::publication, typename parts::place;
  static constexpr std::size_t slots = bucket::slots;

 public:
  static constexpr std::string_view name = "level_table";
  level_body(Medium& medium, typename parts::area& a, std::mutex& /*mutex*/) : parts(medium, a) {}

  bool add(std::uint64_t key, std::uint64_t value) {
    for (int attempt = 0; attempt < 8 && get(area_.log2) != 0; ++attempt) {
      for (std::size_t l = 0; l < 2; ++l)
        for (std::uint64_t c = 0; c < 2; ++c) {
          bucket& b = candidate(l, key, c);
          if (fill(b, free_slot(b), key, value, c == 0 ? in_first : in_second)) return true;
        }
      for (std::size_t l = 0; l < 2; ++l)
        for (std::uint64_t c = 0; c < 2; ++c) {
          bucket& b = candidate(l, key, c);
          if (fill(b, slot_after_move(b, l, move_copy, move_copy, move_tokens, move_tokens), key, value, after_move))
            return true;
        }
      for (std::uint64_t c = 0; c < 2; ++c) {
        bucket& b = candidate(1, key, c);
        const std::size_t s = slot_after_move(b, 0, up_first, up_second, up_first_tokens, up_second_tokens);
        if (fill(b, s, key, value, c == 0 ? after_up_first : after_up_second)) return true;
      }
      if (!grow()) return false;
    }
    return false;
  }

  // In another slot of the bucket, if one is free.
  void set(std::uint64_t key, std::uint64_t value) {
    const place p = search(key);
    const bool first = p.candidate == 0;
    const std::size_t k = free_slot(*p.in);
    if (k != slots)
      return move(*p.in, p.slot, *p.in, k, value, first ? update_first : update_second,
                  first ? update_first_tokens : update_second_tokens, true);
    put(p.in->items[p.slot].value, value);
    media::persist(medium_, p.in->items[p.slot]);
  }

  void take(std::uint64_t key) {
    const place p = search(key);
    put(p.in->token[p.slot], 0);
    media::persist(medium_, p.in->token[p.slot]);
    std::uint64_t left = 0;
    this->for_each([&](std::uint64_t, std::uint64_t) { ++left; });
    if (get(area_.log2) > 2 && left < (slots << get(area_.log2)) / 3) make_smaller();
  }

 private:
  // (T1) < (T2): the item is durable before its token. With the defect, both are stored first. False: there is no slot.
  bool fill(bucket& b, std::size_t s, std::uint64_t key, std::uint64_t value, int order) {
    if (s == slots) return false;
    put(b.items[s].key, key);
    put(b.items[s].value, value);
    if (!has(order)) media::persist(medium_, b.items[s]);  // (T1)
    put(b.token[s], 1);                                    // (T2)
    if (has(order)) media::persist(medium_, b.items[s]);
    media::persist(medium_, b.token[s]);
    return true;
  }

  // An item goes to another slot, perhaps with a new value: both tokens change at once. With the defect `tokens`, one
  // after the other.
  void move(bucket& from, std::size_t f, bucket& to, std::size_t t, std::uint64_t value, int order, int tokens,
            bool clears_first) {
    put(to.items[t].key, get(from.items[f].key));
    put(to.items[t].value, value);
    if (!has(order)) media::persist(medium_, to.items[t]);
    if (has(tokens)) {
      put(clears_first ? from.token[f] : to.token[t], clears_first ? 0 : 1);
      if (!clears_first) media::persist(medium_, to.token[t]);
      put(clears_first ? to.token[t] : from.token[f], clears_first ? 1 : 0);
      media::persist(medium_, from.token[f]);
    } else {
      publication change(medium_);
      change.store(from.token[f], 0);
      change.store(to.token[t], 1);
      change.commit();
    }
    if (has(order)) media::persist(medium_, to.items[t]);
  }

  // A slot of a full bucket, free because its item went to one of its buckets of `target`, a level; `slots`: none.
  std::size_t slot_after_move(bucket& b, std::size_t target, int order_0, int order_1, int tokens_0, int tokens_1) {
    for (std::size_t s = 0; s < slots; ++s)
      for (std::uint64_t c = 0; c < 2; ++c) {
        bucket& to = candidate(target, get(b.items[s].key), c);
        const std::size_t t = free_slot(to);
        if (&to == &b || t == slots) continue;
        move(b, s, to, t, get(b.items[s].value), c == 0 ? order_0 : order_1, c == 0 ? tokens_0 : tokens_1, false);
        return s;
      }
    return slots;
  }

  // The top level becomes the bottom one. False: no space.
  bool grow() {
    const std::size_t log2 = get(area_.log2) + 1;
    publication change(medium_);
    bucket* const block = this->make(change, log2);
    if (block == nullptr) return false;
    const auto top = this->copy(1, block, std::size_t{1} << log2);
    if (top.first == nullptr) return false;
    const auto bottom = level(0);
    change.release(level(1).first, size(1) * sizeof(bucket));
    if (has(expand)) {
      put(area_.log2, log2);
      media::persist(medium_, area_.log2);
    }
    this->publish(change, top, bottom, log2);
    return true;
  }

  // The bottom level becomes the top one, if the entries of the top fit into half of it.
  void make_smaller() {
    const std::size_t log2 = get(area_.log2) - 1;
    publication change(medium_);
    bucket* const block = this->make(change, log2 - 1);
    if (block == nullptr) return;
    const auto bottom = this->copy(0, block, std::size_t{1} << (log2 - 1));
    if (bottom.first == nullptr) return;
    const auto top = level(1);
    change.release(level(0).first, size(0) * sizeof(bucket));
    if (has(shrink)) {
      put(area_.log2, log2);
      put(area_.level[0], get(area_.level[1]));
      media::persist(medium_, area_);
    }
    this->publish(change, top, bottom, log2);
  }
};

template <media::medium Medium>
using level_table = small_map<Medium, level_body>;
const bool registered = verify::register_subject<level_table>();

}  // namespace
}  // namespace pmlab::toys
