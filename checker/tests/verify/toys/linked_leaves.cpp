// A toy: leaves in a list, and a parent that gets a new leaf after its neighbour leads to it, as in the B-link trees
// FAST-FAIR and P-Masstree do.
#include "small_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <thread>
#include <vector>

namespace pmlab::toys {
namespace {

// Numbers 1 to 3: the names are in ../scoreboard/bugs.toml.
enum defect : int { never_adopted = 1, halves_not_cleared, seen_before_durable };

constexpr std::size_t places = 8;
constexpr std::size_t most = 1536;

struct alignas(media::cache_line_bytes) leaf {
  word present{0};  // a bit for each entry
  word low{0};
  word high{0};     // the first key beyond; only with a sibling
  word sibling{0};  // its number; 0: none
  std::array<word, 4> unused{};
  std::array<word, places> key{};
  std::array<word, places> value{};
};

template <class Medium>
class leaves_body {
 public:
  static constexpr std::string_view name = "linked_leaves";
  struct alignas(media::cache_line_bytes) area {
    word told{0};  // leaves that the parent knows, besides the first
    std::array<word, 7> unused{};
    std::array<word, most> parent{};
    std::array<leaf, most> all{};
  };
  static constexpr bool root_is_durable() { return true; }

  leaves_body(Medium& medium, area& a, std::mutex& mutex) : medium_(medium), area_(a), mutex_(mutex) {
    known_[0] = 0;
    for (std::size_t i = 0; i < get(a.told); ++i) known_[get(a.all[get(a.parent[i])].low)] = get(a.parent[i]);
    if (has(seen_before_durable)) complete_splits();
    for (std::uint64_t n = get(a.all[0].sibling); n != 0; n = get(a.all[n].sibling)) {
      next_ = std::max(next_, n + 1);
      if (!has(never_adopted) && !knows(a.all[n])) tell_parent(n);
    }
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    const place p = search(key);
    return p.at == places ? std::nullopt : std::optional(get(p.in->value[p.at]));
  }

  bool add(std::uint64_t key, std::uint64_t value) {
    for (;;) {
      leaf& l = leaf_of(key);
      std::size_t at = 0;
      while (at < places && (get(l.present) >> at & 1) != 0) ++at;
      if (at == places) {
        if (!split(l)) return false;
        continue;
      }
      put(l.key[at], key);
      put(l.value[at], value);
      media::flush(medium_, l.key);
      media::persist(medium_, l.value);
      put(l.present, get(l.present) | std::uint64_t{1} << at);
      media::persist(medium_, l.present);
      return true;
    }
  }
  void set(std::uint64_t key, std::uint64_t value) {
    const place p = search(key);
    put(p.in->value[p.at], value);
    media::persist(medium_, p.in->value[p.at]);
  }
  void take(std::uint64_t key) {
    const place p = search(key);
    put(p.in->present, get(p.in->present) & ~(std::uint64_t{1} << p.at));
    media::persist(medium_, p.in->present);
  }
  template <class Function>
  void for_each(Function&& function) {
    std::uint64_t n = 0;
    do {
      const leaf& l = area_.all[n];
      for (std::size_t at = 0; at < places; ++at)
        if ((get(l.present) >> at & 1) != 0) function(get(l.key[at]), get(l.value[at]));
      n = get(l.sibling);
    } while (n != 0);
  }
  [[nodiscard]] std::uint64_t held() { return 0; }

 private:
  struct place {
    leaf* in = nullptr;
    std::size_t at = places;
  };

  [[nodiscard]] bool knows(const leaf& l) const {
    const auto found = known_.find(get(l.low));
    return found != known_.end() && &area_.all[found->second] == &l;
  }

  leaf& leaf_of(std::uint64_t key) {
    leaf* l = &area_.all[std::prev(known_.upper_bound(key))->second];
    while (get(l->sibling) != 0 && key >= get(l->high)) l = &area_.all[get(l->sibling)];
    return *l;
  }
  place search(std::uint64_t key) {
    leaf& l = leaf_of(key);
    for (std::size_t at = 0; at < places; ++at)
      if ((get(l.present) >> at & 1) != 0 && get(l.key[at]) == key) return {&l, at};
    return {};
  }

  // (P1) < (P2)
  void tell_parent(std::uint64_t n) {
    const std::uint64_t told = get(area_.told);
    put(area_.parent[told], n);
    media::persist(medium_, area_.parent[told]);  // (P1)
    put(area_.told, told + 1);
    media::persist(medium_, area_.told);  // (P2)
    known_[get(area_.all[n].low)] = n;
  }

  // (S1) < (S2): the new leaf is durable before its neighbour leads to it and gives its entries up. False: no leaf is
  // left, or, with the first defect, the parent does not know this one.
  bool split(leaf& l) {
    if (next_ == most || (has(never_adopted) && !knows(l))) return false;
    std::vector<std::uint64_t> keys;
    for (const word& key : l.key) keys.push_back(get(key));
    std::nth_element(keys.begin(), keys.begin() + places / 2, keys.end());
    const std::uint64_t middle = keys[places / 2];
    const std::uint64_t n = next_++;
    leaf& made = area_.all[n];
    std::uint64_t moved = 0;
    for (std::size_t at = 0; at < places; ++at) {
      put(made.key[at], get(l.key[at]));
      put(made.value[at], get(l.value[at]));
      if (get(l.key[at]) >= middle) moved |= std::uint64_t{1} << at;
    }
    put(made.present, moved);
    put(made.low, middle);
    put(made.high, get(l.high));
    put(made.sibling, get(l.sibling));
    media::persist(medium_, made);  // (S1)
    link(l, middle, n, get(l.present) & ~moved);
    tell_parent(n);
    return true;
  }

  void link(leaf& l, std::uint64_t high, std::uint64_t sibling, std::uint64_t present) {
    if (!has(halves_not_cleared) && !has(seen_before_durable)) {
      typename Medium::publication change(medium_);
      change.store(l.high, high);
      change.store(l.sibling, sibling);
      change.store(l.present, present);
      change.commit();  // (S2)
      return;
    }
    put(l.sibling, sibling);
    put(l.high, high);
    if (has(halves_not_cleared)) media::persist(medium_, l.sibling);
    put(l.present, present);
    if (has(seen_before_durable)) {
      mutex_.unlock();  // others go along the link
      std::this_thread::yield();
      mutex_.lock();
    }
    media::persist(medium_, l.present);
  }

  void complete_splits() {
    for (leaf* l = &area_.all[0]; get(l->sibling) != 0; l = &area_.all[get(l->sibling)]) {
      put(l->high, get(area_.all[get(l->sibling)].low));
      for (std::size_t at = 0; at < places; ++at)
        if (get(l->key[at]) >= get(l->high)) put(l->present, get(l->present) & ~(std::uint64_t{1} << at));
    }
  }

  Medium& medium_;
  area& area_;
  std::mutex& mutex_;
  std::map<std::uint64_t, std::uint64_t> known_;  // lowest key -> number of the leaf
  std::uint64_t next_ = 1;
};

template <media::medium Medium>
using linked_leaves = small_map<Medium, leaves_body>;
const bool registered = verify::register_subject<linked_leaves>();

}  // namespace
}  // namespace pmlab::toys
