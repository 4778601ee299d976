// A cache behind virtual calls, over an index behind virtual calls: compiled once, for all libraries.
#include "tools/pibench/wrapper/environment.hpp"
#include "tools/pibench/wrapper/make_words.hpp"
#include "tools/pibench/wrapper/tree_of_words.hpp"
#include "tools/pibench/wrapper/words_behind.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::pibench {
namespace {

class cached_words final : public words_behind {
 public:
  cached_words(const cache::options& options, std::unique_ptr<words_behind> behind)
      : options_(options), behind_(std::move(behind)) {}

  [[nodiscard]] erased::any_medium& medium() override { return behind_->medium(); }
  [[nodiscard]] std::unique_ptr<tree_api> open_tree(std::string_view name,
                                                    std::unique_ptr<words_behind> itself) override {
    cached_index& index = opened_.emplace(behind_->open(layout_name()), options_).index;
    return std::make_unique<tree_of_words<cached_index>>(name, std::move(itself), index);
  }
  [[nodiscard]] erased::any_index& open(std::string_view name) override {
    return opened_.emplace(behind_->open(name), options_).shown;
  }
  [[nodiscard]] std::string_view layout_name() const noexcept override { return behind_->layout_name(); }
  // Behind a cache string keys are parted into words, also where the index alone has a tree of strings beside it.
  [[nodiscard]] indexes::string_form string_form() const noexcept override {
    return behind_->string_form() == indexes::string_form::hashes ? indexes::string_form::hashes
                                                                  : indexes::string_form::trie;
  }

 private:
  // Scans of an index without an order are refused before they come here.
  using cached_index = cache::async_cache<erased::attached_ordered_index, cache::chosen_eviction>;

  struct opened {
    opened(erased::any_index& behind, const cache::options& o)
        : index(cached_index::open(behind, cached_index::layout_name, o)), shown(index, behind.medium()) {}
    cached_index index;
    erased::erased_layer<cached_index> shown;
  };

  cache::options options_;
  std::unique_ptr<words_behind> behind_;
  std::optional<opened> opened_{};
};

cache::options parse(const std::string& text) {
  const spec given = parse_spec("cache(the_index," + text + ")");
  cache::options o = cache::parse_options(given);
  if (!given.option("capacity")) o.size = {};
  if (o.size.in == cache::capacity::unit::share)
    throw error("no share can be taken of an index that is yet to be loaded",
                "give capacity=100k (entries) or capacity=64MiB");
  return o;
}

}  // namespace

std::unique_ptr<words_behind> make_cached_index(const place& memory) {
  // First: no pool is made if it is not understood.
  const cache::options options = from_environment("PMLAB_CACHE", "capacity=64k", parse);
  return std::make_unique<cached_words>(options, make_own_index(memory));
}

}  // namespace pmlab::pibench
