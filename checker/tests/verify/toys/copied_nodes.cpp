// A toy: nodes are never changed, but copied with the change and then linked in the place of the old one (P-HOT).
#include "small_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <array>
#include <new>

namespace pmlab::toys {
namespace {

// Numbers 1 to 3: the names are in ../scoreboard/bugs.toml.
enum defect : int { root_unfenced = 1, node_unfenced, pointer_unflushed };

constexpr std::size_t fanout = 64;

template <class Medium>
class copied_body {
 public:
  static constexpr std::string_view name = "copied_nodes";
  struct alignas(media::cache_line_bytes) area {
    word root{0};
    // With defect 3: the nodes that change places.
    word outgoing{0};
    word incoming{0};
    std::array<word, 5> unused{};
  };
  static constexpr bool root_is_durable() { return true; }

  copied_body(Medium& medium, area& a, std::mutex& /*mutex*/) : medium_(medium), area_(a) {
    if (get(a.incoming) == 0) return;
    bool linked = false;
    for (word& child : root()->child) linked = linked || get(child) == get(a.incoming);
    settle(linked ? a.outgoing : a.incoming);
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    entry* const e = search(key);
    return e == nullptr ? std::nullopt : std::optional(get(e->value));
  }

  bool add(std::uint64_t key, std::uint64_t value) {
    if (get(area_.root) == 0 && !make_root()) return false;
    node* const old = node_of(key);
    std::size_t live = 0;
    if (old != nullptr) old->for_each([&](entry&) { ++live; });
    typename Medium::publication change(medium_);
    node* const made = make(change, live + 1);
    if (made == nullptr) return false;
    entry* next = &made->at(0);
    const auto append = [&](std::uint64_t k, std::uint64_t v) {
      put(next->key, k);
      put(next->value, v);
      ++next;
    };
    if (old != nullptr) old->for_each([&](entry& e) { append(get(e.key), get(e.value)); });
    append(key, value);
    medium_.flush(made, made->bytes());
    if (!has(node_unfenced)) medium_.fence();  // (N1)
    replace(change, ref_of(key), old, made);   // (N2)
    return true;
  }
  void set(std::uint64_t key, std::uint64_t value) {
    entry* const e = search(key);
    put(e->value, value);
    media::persist(medium_, *e);
  }
  // The node stays as long as it is: an entry is marked, and left out of the next copy.
  void take(std::uint64_t key) {
    entry* const e = search(key);
    put(e->gone, 1);
    media::persist(medium_, *e);
  }
  template <class Function>
  void for_each(Function&& function) {
    for (std::size_t c = 0; get(area_.root) != 0 && c < fanout; ++c)
      if (node* const n = named(root()->child[c]); n != nullptr)
        n->for_each([&](entry& e) { function(get(e.key), get(e.value)); });
  }
  [[nodiscard]] std::uint64_t held() {
    std::uint64_t bytes = get(area_.root) == 0 ? 0 : sizeof(root_node);
    for (std::size_t c = 0; bytes != 0 && c < fanout; ++c)
      if (node* const n = named(root()->child[c]); n != nullptr) bytes += n->bytes();
    return bytes;
  }

 private:
  struct entry {
    word key{0}, value{0}, gone{0}, unused{0};
  };
  struct alignas(media::cache_line_bytes) node {
    word count{0};
    std::array<word, 7> unused{};

    [[nodiscard]] std::size_t bytes() const { return sizeof(node) + get(count) * sizeof(entry); }
    [[nodiscard]] entry& at(std::size_t i) { return reinterpret_cast<entry*>(this + 1)[i]; }
    template <class Function>
    void for_each(Function&& function) {
      for (std::size_t i = 0; i < get(count); ++i)
        if (get(at(i).gone) == 0) function(at(i));
    }
  };
  struct alignas(media::cache_line_bytes) root_node {
    std::array<word, fanout> child{};
  };

  root_node* root() { return medium_.resolve(media::pointer<root_node>(get(area_.root))); }
  node* named(const word& w) { return get(w) == 0 ? nullptr : medium_.resolve(media::pointer<node>(get(w))); }
  word& ref_of(std::uint64_t key) { return root()->child[hash_of(key) % fanout]; }
  node* node_of(std::uint64_t key) { return get(area_.root) == 0 ? nullptr : named(ref_of(key)); }
  entry* search(std::uint64_t key) {
    entry* found = nullptr;
    if (node* const n = node_of(key); n != nullptr)
      n->for_each([&](entry& e) { found = get(e.key) == key ? &e : found; });
    return found;
  }

  node* make(typename Medium::publication& change, std::size_t count) {
    void* const block = change.allocate(sizeof(node) + count * sizeof(entry), alignof(node));
    if (block == nullptr) return nullptr;
    auto* const made = ::new (block) node;
    put(made->count, count);
    for (std::size_t i = 0; i < count; ++i) ::new (&made->at(i)) entry;
    return made;
  }

  // (R1) < (R2): the first root is durable before it is linked.
  bool make_root() {
    typename Medium::publication change(medium_);
    auto* const made = media::create<root_node>(change);
    if (made == nullptr) return false;
    media::flush(medium_, *made);
    if (!has(root_unfenced)) medium_.fence();               // (R1)
    change.store(area_.root, medium_.locate(made).word());  // (R2)
    change.commit();
    return true;
  }

  // With defect 3, the pointer is stored alone, and its address in DRAM is flushed.
  void replace(typename Medium::publication& change, word& ref, node* old, node* made) {
    const std::uint64_t to = medium_.locate(made).word();
    if (!has(pointer_unflushed)) {
      change.store(ref, to);
      if (old != nullptr) change.release(old, old->bytes());
      change.commit();
      return;
    }
    change.store(area_.outgoing, get(ref));
    change.store(area_.incoming, to);
    change.commit();
    put(ref, to);
    word* const there = &ref;
    medium_.flush(&there, sizeof there);
    medium_.fence();
    settle(area_.outgoing);
  }
  // Ends the exchange of two nodes: releases the one that is not linked.
  void settle(const word& unlinked) {
    typename Medium::publication change(medium_);
    if (node* const n = named(unlinked); n != nullptr) change.release(n, n->bytes());
    change.store(area_.outgoing, 0);
    change.store(area_.incoming, 0);
    change.commit();
  }

  Medium& medium_;
  area& area_;
};

template <media::medium Medium>
using copied_nodes = small_map<Medium, copied_body>;
const bool registered = verify::register_subject<copied_nodes>();

}  // namespace
}  // namespace pmlab::toys
