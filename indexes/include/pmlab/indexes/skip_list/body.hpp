// Shared by the parts of a skip list: its medium, its lists, its nodes, its locks.
#pragma once

#include <pmlab/indexes/skip_list/chain.hpp>
#include <pmlab/indexes/skip_list/compaction.hpp>
#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/indexes/skip_list/recovery.hpp>
#include <pmlab/indexes/skip_list/slabs.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::indexes::detail::skip_list {

template <class Medium, std::size_t Levels>
struct body {
  using root_type = root_object<Levels>;
  using slab_type = typename slabs<Medium>::slab_type;
  using publication = typename Medium::publication;

  body(Medium& m, std::string_view root_name, std::atomic<std::uint64_t>& root_word, bool zeroed)
      : medium(m),
        name(root_name),
        nodes(m, zeroed),
        epochs(media::reclaim_batch_on<Medium>(sync::epochs::usual_batch)),
        list(m),
        locks(lock_stripes) {
    if (root_word.load(std::memory_order_acquire) == 0) create(root_word);
    const media::pointer<root_type> at(root_word.load(std::memory_order_acquire));
    if (!media::can_name(medium, at)) throw corrupt("its root");
    root = medium.resolve(at);
    if (root->magic.load(std::memory_order_acquire) != root_type::right_magic) throw corrupt("its root");
    nodes.begin_at(root->slabs, root->writers, root->heads);
  }

  [[nodiscard]] sync::version_lock& lock_of(const node& n) const noexcept {
    return locks[reinterpret_cast<std::uintptr_t>(&n) / sizeof(node)];
  }

  // Retires `n`, which was snipped off behind `before`: it is freed when no reader can use it. Without memory for that
  // it is lost until the next open.
  void retire(node& n, node& before) {
    if (!epochs.retire([this, n = &n, before = &before] { nodes.give_back_snipped(*n, *before); })) nodes.lose_one();
  }

  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 13);

  Medium& medium;
  std::string name;
  root_type* root = nullptr;
  slabs<Medium> nodes;
  sync::epochs epochs;  // its end gives nodes back
  chain<Medium> list;
  sync::version_lock_table locks;
  compaction<slabs<Medium>> compact;

 private:
  // Makes an empty list: root and first slab are durable before the named root leads to them (A6).
  void create(std::atomic<std::uint64_t>& root_word) {
    publication change(medium);
    auto* const made = media::create<root_type>(change);
    auto* const first = made == nullptr ? nullptr : nodes.make(change, 0);
    if (first == nullptr) throw error("no space for an empty skip list", "use a larger pool");
    made->magic.store(root_type::right_magic, std::memory_order_relaxed);
    made->slabs.store(medium.locate(first).word(), std::memory_order_relaxed);
    made->writers.store(0, std::memory_order_relaxed);
    for (node& head : made->heads) {
      head.key.store(0, std::memory_order_relaxed);
      head.value.store(0, std::memory_order_relaxed);
      head.next.store(0, std::memory_order_relaxed);
      head.level.store(0, std::memory_order_relaxed);
    }
    media::persist(medium, *made);                        // (M1)
    change.store(root_word, medium.locate(made).word());  // (M2)
    // (M1) < (M2): the named root never leads to memory that is not durable.
    change.commit();
    // Its nodes are found free by the open that follows.
  }
};

}  // namespace pmlab::indexes::detail::skip_list
