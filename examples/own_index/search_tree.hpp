// A binary search tree in C++, written without any knowledge of pmlab: nodes by new, write-backs by clflush and mfence,
// a lock in the first node. Keys are only ever added. -DWITHOUT_FLUSH plants a bug. search_tree_library.cpp makes a
// library of it, and docs/own-index.md has the commands.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <emmintrin.h>

class search_tree {
 public:
  static search_tree* create() {
    auto* const tree = new search_tree;
    tree->first_ = new node(0, 0);
    write_back(tree->first_, sizeof(node));
    write_back(tree, sizeof *tree);
    _mm_mfence();
    return tree;
  }

  // A crash may have left the lock taken, and its owner is gone.
  void recover() { first_->lock = 0; }

  bool insert(std::uint64_t key, std::uint64_t value) {
    const guard locked(*first_);
    std::atomic<node*>* link = place_of(key);
    if (link->load() != nullptr) return false;
    node* const fresh = new node(key, value);
#if !defined(WITHOUT_FLUSH)
    write_back(fresh, sizeof *fresh);
#endif
    _mm_mfence();
    link->store(fresh);
    write_back(link, sizeof *link);
    _mm_mfence();
    return true;
  }

  bool find(std::uint64_t key, std::uint64_t& value) {
    const guard locked(*first_);
    const node* const found = place_of(key)->load();
    if (found == nullptr) return false;
    value = found->value;
    return true;
  }

 private:
  struct node {
    node(std::uint64_t k, std::uint64_t v) : key(k), value(v) {}
    std::uint64_t key;
    std::uint64_t value;
    std::atomic<node*> smaller{nullptr};
    std::atomic<node*> greater{nullptr};
    std::atomic<std::uint64_t> lock{0};  // the tree's lock is the first node's
  };

  class guard {
   public:
    explicit guard(node& first) : first_(first) {
      while (first_.lock.exchange(1) != 0) std::this_thread::yield();
    }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() { first_.lock.store(0); }

   private:
    node& first_;
  };

  static void write_back(const void* from, std::size_t bytes) {
    constexpr std::uintptr_t line = 64;
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    for (std::uintptr_t at = begin & ~(line - 1); at < begin + bytes; at += line)
      _mm_clflush(reinterpret_cast<const void*>(at));
  }

  // The link that leads to the key, or would.
  std::atomic<node*>* place_of(std::uint64_t key) {
    std::atomic<node*>* link = &first_->greater;
    for (node* n = link->load(); n != nullptr && n->key != key; n = link->load())
      link = key < n->key ? &n->smaller : &n->greater;
    return link;
  }

  node* first_ = nullptr;
};
