// A toy: nodes of four children with two counts, as a radix tree with adaptive nodes has them (P-ART): how many places
// were used, and how many of them are in use. A full node leads to the next one.
#include "small_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <array>

namespace pmlab::toys {
namespace {

// Numbers 1 and 2: the names are in ../scoreboard/bugs.toml.
enum defect : int { child_before_count = 1, walk_by_count };

constexpr std::size_t nodes = 2048;
constexpr std::size_t places = 4;

struct alignas(media::cache_line_bytes) node {
  word used{0};
  word count{0};
  std::array<word, 6> unused{};
  std::array<word, 2 * places> child{};  // 1: there is one; on a line of its own
  std::array<word, places> key{};
  std::array<word, places> value{};
};

template <class Medium>
class counted_body {
 public:
  static constexpr std::string_view name = "counted_nodes";
  struct alignas(media::cache_line_bytes) area {
    std::array<node, nodes> all{};
  };
  static bool root_is_durable() { return true; }

  counted_body(Medium& medium, area& a, std::mutex& /*mutex*/) : medium_(medium), area_(a) {}

  std::optional<std::uint64_t> find(std::uint64_t key) {
    const place p = search(key);
    return p.in == nullptr ? std::nullopt : std::optional(get(p.in->value[p.at]));
  }

  bool add(std::uint64_t key, std::uint64_t value) {
    for (std::size_t i = 0; i < nodes; ++i) {
      node& n = area_.all[(hash_of(key) + i) % nodes];
      const std::size_t at = free_place(n);
      if (at == places) continue;
      put(n.key[at], key);
      put(n.value[at], value);
      media::persist(medium_, n.key);
      media::persist(medium_, n.value);
      const std::uint64_t used = std::max<std::uint64_t>(get(n.used), at + 1);
      if (has(child_before_count) || has(walk_by_count)) {
        put(n.child[at], 1);
        media::persist(medium_, n.child);
        put(n.used, used);
        put(n.count, get(n.count) + 1);
        media::persist(medium_, n.count);
      } else {
        change(n, at, 1, used, get(n.count) + 1);
      }
      return true;
    }
    return false;
  }
  void set(std::uint64_t key, std::uint64_t value) {
    const place p = search(key);
    put(p.in->value[p.at], value);
    media::persist(medium_, p.in->value[p.at]);
  }
  void take(std::uint64_t key) {
    const place p = search(key);
    change(*p.in, p.at, 0, get(p.in->used), get(p.in->count) - 1);
  }
  template <class Function>
  void for_each(Function&& function) {
    for (node& n : area_.all)
      for (std::size_t at = 0; at < places; ++at)
        if (get(n.child[at]) != 0 && (has(child_before_count) || at < get(n.used)))
          function(get(n.key[at]), get(n.value[at]));
  }
  [[nodiscard]] std::uint64_t held() { return 0; }

 private:
  struct place {
    node* in = nullptr;
    std::size_t at = 0;
  };

  // An unused place first; then one that is free again.
  static std::size_t free_place(const node& n) {
    if (get(n.used) < places) return get(n.used);
    std::size_t at = 0;
    while (at < places && (get(n.count) == places || get(n.child[at]) != 0)) ++at;
    return at;
  }

  // With the defects, a child is there as soon as it is stored.
  place search(std::uint64_t key) {
    const bool by_child = has(child_before_count) || has(walk_by_count);
    for (std::size_t i = 0; i < nodes; ++i) {
      node& n = area_.all[(hash_of(key) + i) % nodes];
      for (std::size_t at = 0; at < places; ++at)
        if ((by_child || at < get(n.used)) && get(n.child[at]) != 0 && get(n.key[at]) == key) return {&n, at};
      if (get(n.used) < places) return {};
    }
    return {};
  }

  void change(node& n, std::size_t at, std::uint64_t child, std::uint64_t used, std::uint64_t count) {
    typename Medium::publication together(medium_);
    together.store(n.child[at], child);
    together.store(n.used, used);
    together.store(n.count, count);
    together.commit();
  }

  Medium& medium_;
  area& area_;
};

template <media::medium Medium>
using counted_nodes = small_map<Medium, counted_body>;
const bool registered = verify::register_subject<counted_nodes>();

}  // namespace
}  // namespace pmlab::toys
