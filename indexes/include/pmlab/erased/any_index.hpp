// An open index on its medium, behind virtual calls: a layer in front of it (a cache) uses this and is not compiled for
// every index and medium.
#pragma once

#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace pmlab::erased {

// Thread safety and durability: the index's.
class any_index {
 public:
  // Forwards begin and end of operations to its medium, also for background threads of a layer in front of it.
  static constexpr media::optional_parts parts{.operations = true};
  void begin_operation() { medium().begin_operation(); }
  void end_operation() { medium().end_operation(); }

  any_index() = default;
  any_index(const any_index&) = delete;
  any_index& operator=(const any_index&) = delete;
  virtual ~any_index() = default;

  virtual indexes::outcome insert(indexes::key_type key, indexes::value_type value) = 0;
  virtual indexes::outcome update(indexes::key_type key, indexes::value_type value) = 0;
  virtual indexes::outcome upsert(indexes::key_type key, indexes::value_type value) = 0;
  virtual indexes::outcome erase(indexes::key_type key) = 0;
  virtual std::optional<indexes::value_type> find(indexes::key_type key) = 0;
  virtual void find_batch(std::span<const indexes::key_type> keys,
                          std::span<std::optional<indexes::value_type>> values) = 0;
  // Whether prefetch_find does anything.
  [[nodiscard]] virtual bool offers_prefetch() const = 0;
  // Does nothing if the index does not offer it.
  virtual void prefetch_find(indexes::key_type key) = 0;
  // 0, if the index has no order.
  virtual std::size_t scan(indexes::key_type from, std::span<indexes::entry> out) = 0;
  // One after the other, if the index does not offer it.
  virtual std::size_t load(std::span<const indexes::entry> ascending) = 0;
  virtual void for_each(const std::function<void(indexes::key_type, indexes::value_type)>& function) = 0;
  [[nodiscard]] virtual indexes::index_stats stats() const = 0;
  [[nodiscard]] virtual indexes::check_report check() const = 0;
  // How string keys are kept over it.
  [[nodiscard]] virtual indexes::string_form string_form() const noexcept = 0;

  // Where it is; of several, where a crash leaves it.
  [[nodiscard]] virtual any_medium& medium() = 0;
};

// All of it but where the index is. `index` outlives this.
template <indexes::point_index Index>
class erased_operations : public any_index {
 public:
  // Operations of `index`.
  explicit erased_operations(Index& index) : index_(index) {}

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) override {
    return index_.insert(key, value);
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) override {
    return index_.update(key, value);
  }
  indexes::outcome upsert(indexes::key_type key, indexes::value_type value) override {
    return index_.upsert(key, value);
  }
  indexes::outcome erase(indexes::key_type key) override { return index_.erase(key); }
  std::optional<indexes::value_type> find(indexes::key_type key) override { return index_.find(key); }
  void find_batch(std::span<const indexes::key_type> keys,
                  std::span<std::optional<indexes::value_type>> values) override {
    index_.find_batch(keys, values);
  }
  // Whether the index has prefetch_find.
  [[nodiscard]] bool offers_prefetch() const override {
    return requires(Index & index, indexes::key_type key) { index.prefetch_find(key); };
  }
  void prefetch_find(indexes::key_type key) override {
    if constexpr (requires { index_.prefetch_find(key); }) index_.prefetch_find(key);
  }
  std::size_t scan(indexes::key_type from, std::span<indexes::entry> out) override {
    if constexpr (indexes::ordered_index<Index>) return index_.scan(from, out);
    return 0;
  }
  std::size_t load(std::span<const indexes::entry> ascending) override {
    return indexes::detail::load_into(index_, ascending);
  }
  void for_each(const std::function<void(indexes::key_type, indexes::value_type)>& function) override {
    index_.for_each(function);
  }
  [[nodiscard]] indexes::index_stats stats() const override { return index_.stats(); }
  [[nodiscard]] indexes::check_report check() const override { return index_.check(); }
  [[nodiscard]] indexes::string_form string_form() const noexcept override { return indexes::string_form_over<Index>; }

 private:
  Index& index_;
};

// `index`, and the `medium` that it is open on; both outlive this.
template <indexes::point_index Index, class Medium>
class erased_index final : public erased_operations<Index> {
 public:
  // Operations of `index`, on `medium`.
  erased_index(Index& index, Medium& medium) : erased_operations<Index>(index), medium_(medium) {}
  [[nodiscard]] any_medium& medium() override { return medium_; }

 private:
  erased_medium<Medium> medium_;
};

// An index made of others, with the medium of the one that a crash leaves. All of them outlive this.
template <indexes::point_index Index>
class erased_layer final : public erased_operations<Index> {
 public:
  // Operations of `index`; a crash leaves `medium`.
  erased_layer(Index& index, any_medium& medium) : erased_operations<Index>(index), medium_(medium) {}
  [[nodiscard]] any_medium& medium() override { return medium_; }

 private:
  any_medium& medium_;
};

// The same by value, with the concepts' interface.
class attached_index {
 public:
  static constexpr std::string_view layout_name = "attached";
  static constexpr std::uint64_t layout_version = 1;

  // Attaches to `index`, which is open already.
  static attached_index open(any_index& index, std::string_view /*name*/ = layout_name) {
    return attached_index(index);
  }

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) { return index_->insert(key, value); }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) { return index_->update(key, value); }
  indexes::outcome upsert(indexes::key_type key, indexes::value_type value) { return index_->upsert(key, value); }
  indexes::outcome erase(indexes::key_type key) { return index_->erase(key); }
  std::optional<indexes::value_type> find(indexes::key_type key) { return index_->find(key); }
  void find_batch(std::span<const indexes::key_type> keys, std::span<std::optional<indexes::value_type>> values) {
    index_->find_batch(keys, values);
  }
  // Whether prefetch_find does anything.
  [[nodiscard]] bool offers_prefetch() const { return index_->offers_prefetch(); }
  // Prefetches the lines that a find of `key` reads first.
  void prefetch_find(indexes::key_type key) { index_->prefetch_find(key); }
  std::size_t scan(indexes::key_type from, std::span<indexes::entry> out) { return index_->scan(from, out); }
  std::size_t load(std::span<const indexes::entry> ascending) { return index_->load(ascending); }
  template <class Function>
  void for_each(Function&& function) const {
    index_->for_each(function);
  }
  [[nodiscard]] std::uint64_t size() const { return stats().entries; }
  [[nodiscard]] indexes::index_stats stats() const { return index_->stats(); }
  [[nodiscard]] indexes::check_report check() const { return index_->check(); }

 protected:
  // Attaches to `index`.
  explicit attached_index(any_index& index) : index_(&index) {}

 private:
  any_index* index_;
};

// The same for an ordered index. String keys over it are parted into words.
class attached_ordered_index : public attached_index {
 public:
  // Attaches to `index`, which is open already and has an order.
  static attached_ordered_index open(any_index& index, std::string_view /*name*/ = layout_name) {
    return attached_ordered_index(index);
  }

  template <class Function>
  void for_each_in(indexes::key_type first, indexes::key_type last, Function&& function) {
    indexes::detail::for_each_in_by_scan(*this, first, last, function);
  }

 protected:
  using attached_index::attached_index;
};

// And beside which string keys have a tree of their own.
class attached_beside_strings : public attached_ordered_index {
 public:
  // See indexes::string_form_over.
  static constexpr bool has_tree_of_strings = true;

  // Attaches to `index`, which is open already and has an order.
  static attached_beside_strings open(any_index& index, std::string_view /*name*/ = layout_name) {
    return attached_beside_strings(index);
  }

 private:
  using attached_ordered_index::attached_ordered_index;
};

// Calls work(std::type_identity<Index>()) with the class that attaches to an index so that string keys over it have
// this form.
template <class Work>
decltype(auto) with_attached(indexes::string_form form, Work&& work) {
  switch (form) {
    case indexes::string_form::trie: return work(std::type_identity<attached_ordered_index>());
    case indexes::string_form::tree: return work(std::type_identity<attached_beside_strings>());
    case indexes::string_form::hashes: break;
  }
  return work(std::type_identity<attached_index>());
}

}  // namespace pmlab::erased
