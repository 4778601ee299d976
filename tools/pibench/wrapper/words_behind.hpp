// The index of a recipe on its medium behind virtual calls: the operations that string keys need, so that they are
// compiled once and not for each library.
#pragma once

#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>

#include <optional>
#include <string_view>
#include <utility>

namespace pmlab::pibench {

// Thread safety and durability: the index's.
class words_behind {
 public:
  words_behind() = default;
  words_behind(const words_behind&) = delete;
  words_behind& operator=(const words_behind&) = delete;
  virtual ~words_behind() = default;

  [[nodiscard]] virtual erased::any_medium& medium() = 0;
  // Opens the index `name`. REQUIRES: called once. Throws the exceptions of the index.
  [[nodiscard]] virtual erased::any_index& open(std::string_view name) = 0;
  // The name of the index alone in a pool.
  [[nodiscard]] virtual std::string_view layout_name() const noexcept = 0;
  [[nodiscard]] virtual indexes::string_form string_form() const noexcept = 0;
};

// The index of `Recipe` on a separate `Medium`.
template <class Medium, class Recipe>
class words_of_recipe final : public words_behind {
  using index_type = decltype(std::declval<Recipe&>().open(std::declval<Medium&>()));

 public:
  template <class... MediumArguments>
  explicit words_of_recipe(MediumArguments&&... of_the_medium)
      : medium_(std::forward<MediumArguments>(of_the_medium)...) {}

  [[nodiscard]] erased::any_medium& medium() override { return erased_medium_; }
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

}  // namespace pmlab::pibench
