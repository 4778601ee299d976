// The words of a recipe, which defines how an index is opened on a medium: `recipe.open(medium, name)`. A recipe
// outlives the index, and may hold further objects that the index needs (wrapper/own_index.cpp.in, wrapper/hybrid.hpp).
#pragma once

#include "tools/pibench/wrapper/tree_of_words.hpp"
#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace pmlab::pibench {

// The index of `Recipe` on a separate `Medium`.
template <class Medium, class Recipe>
class words_of_recipe final : public words_behind {
  using index_type = decltype(std::declval<Recipe&>().open(std::declval<Medium&>()));

 public:
  template <class... MediumArguments>
  explicit words_of_recipe(MediumArguments&&... of_the_medium)
      : medium_(std::forward<MediumArguments>(of_the_medium)...) {}

  [[nodiscard]] erased::any_medium& medium() override { return erased_medium_; }
  [[nodiscard]] std::unique_ptr<tree_api> open_tree(std::string_view name,
                                                    std::unique_ptr<words_behind> itself) override {
    index_type& index = opened_.emplace(*this, std::string_view()).index;
    return std::make_unique<tree_of_words<index_type>>(name, std::move(itself), index);
  }
  [[nodiscard]] erased::any_index& open(std::string_view name) override {
    opened& made = opened_.emplace(*this, name);
    return made.shown;
  }
  [[nodiscard]] std::string_view layout_name() const noexcept override { return index_type::layout_name; }
  [[nodiscard]] indexes::string_form string_form() const noexcept override {
    return indexes::string_form_over<index_type>;
  }

 private:
  struct opened {
    opened(words_of_recipe& of, std::string_view name)
        : index(of.recipe_.open(of.medium_, name)), shown(index, of.erased_medium_) {}
    index_type index;
    erased::erased_layer<index_type> shown;
  };

  Recipe recipe_;
  Medium medium_;
  erased::erased_medium<Medium> erased_medium_{medium_};
  std::optional<opened> opened_;
};

// See make_words.
template <class Recipe>
[[nodiscard]] std::unique_ptr<words_behind> make_words_of(const place& memory) {
  if (memory.pool_path.empty()) return std::make_unique<words_of_recipe<media::dram, Recipe>>();
  return std::make_unique<words_of_recipe<media::pmem, Recipe>>(memory.pool_path, memory.pool);
}

}  // namespace pmlab::pibench
