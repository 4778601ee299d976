// The index of a library on its medium, behind virtual calls: trees, caches and create_tree are compiled once, and not
// for each library.
#pragma once

#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace pmlab::pibench {

// Thread safety and durability: the index's.
class words_behind {
 public:
  words_behind() = default;
  words_behind(const words_behind&) = delete;
  words_behind& operator=(const words_behind&) = delete;
  virtual ~words_behind() = default;

  [[nodiscard]] virtual erased::any_medium& medium() = 0;
  // Opens the index alone in a pool, and returns it as the tree of the library `name` for keys and values of 8 bytes.
  // REQUIRES: called once, and `itself` is this object. Throws the exceptions of the index.
  [[nodiscard]] virtual std::unique_ptr<tree_api> open_tree(std::string_view name,
                                                            std::unique_ptr<words_behind> itself) = 0;
  // Opens the index `name`, for string keys. REQUIRES: called once. Throws the exceptions of the index.
  [[nodiscard]] virtual erased::any_index& open(std::string_view name) = 0;
  // The name of the index alone in a pool.
  [[nodiscard]] virtual std::string_view layout_name() const noexcept = 0;
  [[nodiscard]] virtual indexes::string_form string_form() const noexcept = 0;
};

// The memory of an index.
struct place {
  std::string pool_path{};     // empty: DRAM, and nothing survives the tree
  media::pmem_options pool{};  // how the pool is opened
};

}  // namespace pmlab::pibench
