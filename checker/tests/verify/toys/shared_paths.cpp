// A toy: a binary radix tree whose nodes hold the bits that all keys below them share (WOART). A node whose bits a new
// key does not share gets a parent, and a shorter path.
#include "small_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <algorithm>
#include <array>

namespace pmlab::toys {
namespace {

// The name is in ../scoreboard/bugs.toml.
enum defect : int { parent_before_path = 1 };

constexpr std::size_t most = 4096;

// Words that lead to a node are 0, or its number and kind.
enum : std::uint64_t { is_leaf = 1, is_inner = 2 };

struct alignas(32) inner_node {
  word path{0};  // its length, and the bits above
  std::array<word, 2> child{};
};
struct alignas(32) leaf_node {
  word key{0}, value{0}, live{0};
};

template <class Medium>
class paths_body {
 public:
  static constexpr std::string_view name = "shared_paths";
  struct alignas(media::cache_line_bytes) area {
    word root{0};
    std::array<word, 7> unused{};
    std::array<inner_node, most> inner{};
    std::array<leaf_node, most> leaf{};
  };
  static constexpr bool root_is_durable() { return true; }

  paths_body(Medium& medium, area& a, std::mutex& /*mutex*/) : medium_(medium), area_(a) {
    walk(get(a.root), [&](std::uint64_t to) {
      std::size_t& next = (to & is_leaf) != 0 ? next_leaf_ : next_inner_;
      next = std::max(next, (to >> 2) + 1);
    });
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    leaf_node* const l = search(key);
    return l == nullptr || get(l->live) == 0 ? std::nullopt : std::optional(get(l->value));
  }
  bool add(std::uint64_t key, std::uint64_t value) {
    leaf_node* const l = search(key);
    if (l == nullptr) return insert(key, value);
    put(l->value, value);
    put(l->live, 1);
    media::persist(medium_, *l);
    return true;
  }
  void set(std::uint64_t key, std::uint64_t value) {
    leaf_node* const l = search(key);
    put(l->value, value);
    media::persist(medium_, *l);
  }
  void take(std::uint64_t key) {
    leaf_node* const l = search(key);
    put(l->live, 0);
    media::persist(medium_, *l);
  }
  template <class Function>
  void for_each(Function&& function) {
    walk(get(area_.root), [&](std::uint64_t to) {
      if ((to & is_leaf) == 0) return;
      const leaf_node& l = area_.leaf[to >> 2];
      if (get(l.live) != 0) function(get(l.key), get(l.value));
    });
  }
  [[nodiscard]] std::uint64_t held() { return 0; }

 private:
  // Bits `from` to `from + count` of a hash, from the highest one.
  static std::uint64_t bits(std::uint64_t h, std::uint64_t from, std::uint64_t count) {
    return count == 0 ? 0 : (h << from) >> (64 - count);
  }
  static std::uint64_t path_of(std::uint64_t h, std::uint64_t from, std::uint64_t length) {
    return bits(h, from, length) << 8 | length;
  }

  leaf_node* search(std::uint64_t key) {
    const std::uint64_t h = hash_of(key);
    std::uint64_t depth = 0;
    std::uint64_t to = get(area_.root);
    while ((to & is_inner) != 0) {
      const inner_node& n = area_.inner[to >> 2];
      const std::uint64_t path = get(n.path);
      if (depth + (path & 255) > 63 || path != path_of(h, depth, path & 255)) return nullptr;
      depth += path & 255;
      to = get(n.child[bits(h, depth++, 1)]);
    }
    if (to == 0) return nullptr;
    leaf_node& l = area_.leaf[to >> 2];
    return get(l.key) == key ? &l : nullptr;
  }

  // False: there are no more nodes.
  bool insert(std::uint64_t key, std::uint64_t value) {
    if (next_leaf_ == most || next_inner_ == most) return false;
    leaf_node& made = area_.leaf[next_leaf_];
    const std::uint64_t to_made = next_leaf_++ << 2 | is_leaf;
    put(made.key, key);
    put(made.value, value);
    put(made.live, 1);
    media::persist(medium_, made);
    const std::uint64_t h = hash_of(key);
    std::uint64_t depth = 0;
    word* ref = &area_.root;
    for (;;) {
      const std::uint64_t to = get(*ref);
      if (to == 0) {
        put(*ref, to_made);
        media::persist(medium_, *ref);
        return true;
      }
      inner_node* const n = (to & is_inner) != 0 ? &area_.inner[to >> 2] : nullptr;
      // The bits from here on that lead to that node: its path, or all of a leaf.
      const std::uint64_t length = n != nullptr ? get(n->path) & 255 : 64 - depth;
      const std::uint64_t there =
          n != nullptr ? get(n->path) >> 8 : bits(hash_of(get(area_.leaf[to >> 2].key)), depth, length);
      std::uint64_t same = 0;
      while (same < length && (there >> (length - same - 1) & 1) == bits(h, depth + same, 1)) ++same;
      if (n != nullptr && same == length) {
        depth += length;
        ref = &n->child[bits(h, depth++, 1)];
        continue;
      }
      inner_node& parent = area_.inner[next_inner_];
      put(parent.path, path_of(h, depth, same));
      put(parent.child[bits(h, depth + same, 1)], to_made);
      put(parent.child[1 - bits(h, depth + same, 1)], to);
      media::persist(medium_, parent);
      const std::uint64_t rest = length - same - 1;
      lead_to(*ref, next_inner_++ << 2 | is_inner, n, (there & ((std::uint64_t{1} << rest) - 1)) << 8 | rest);
      return true;
    }
  }

  // The parent is linked, and the path of the node below it becomes shorter, at once.
  void lead_to(word& ref, std::uint64_t parent, inner_node* below, std::uint64_t path) {
    if (has(parent_before_path)) {
      put(ref, parent);
      if (below != nullptr) put(below->path, path);
      media::flush(medium_, ref);
      if (below != nullptr) media::flush(medium_, *below);
      medium_.fence();
      return;
    }
    typename Medium::publication change(medium_);
    change.store(ref, parent);
    if (below != nullptr) change.store(below->path, path);
    change.commit();
  }

  template <class Function>
  void walk(std::uint64_t to, Function&& function) {
    if (to == 0) return;
    function(to);
    if ((to & is_inner) == 0) return;
    for (word& child : area_.inner[to >> 2].child) walk(get(child), function);
  }

  Medium& medium_;
  area& area_;
  std::size_t next_inner_ = 0;
  std::size_t next_leaf_ = 0;
};

template <media::medium Medium>
using shared_paths = small_map<Medium, paths_body>;
const bool registered = verify::register_subject<shared_paths>();

}  // namespace
}  // namespace pmlab::toys
