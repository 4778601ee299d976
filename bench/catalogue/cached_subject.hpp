// A cache in front of an index as a subject: over any index that shows itself as erased/any_index.hpp.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/layer_hooks.hpp"
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::bench {

// `Cache`: a class of caches that opens itself in front of an erased::attached_index.
template <class Cache>
class cached_subject final : public subject {
 public:
  cached_subject(std::unique_ptr<subject> behind, const cache::options& o) : behind_(std::move(behind)), options_(o) {
    open();
  }

  [[nodiscard]] std::string medium() const override { return behind_->medium(); }
  [[nodiscard]] bool durable() const override { return behind_->durable(); }

  work_done run(const work& w) override {
    erased::any_medium& medium = behind_->index()->medium();
    if (medium.wants_hooks()) return execute(open_->cache, w, hooks{medium});
    return execute(open_->cache, w, no_hooks{});
  }

  space_used space() override {
    space_used sum = behind_->space();
    sum.dram_bytes += open_->cache.cache_statistics().bytes;
    return sum;
  }
  std::optional<media::counts> accesses() override { return behind_->accesses(); }
  void reset_accesses() override { behind_->reset_accesses(); }
  std::optional<persist_sums> persists() override { return behind_->persists(); }
  std::optional<media_sums> media_bytes() override { return behind_->media_bytes(); }
  [[nodiscard]] std::optional<media::persistence_domain> persistence() const override { return behind_->persistence(); }
  std::optional<media::emulation_counts> emulation() override { return behind_->emulation(); }
  layer_statistics layer() override { return open_->cache.cache_statistics(); }
  [[nodiscard]] erased::any_index* index() override { return &open_->shown; }

  void reopen() override {
    open_.reset();
    behind_->reopen();
    open();
  }

 private:
  struct opened {
    opened(erased::any_index& index, const cache::options& o)
        : cache(Cache::open(index, "", o)), shown(cache, index.medium()) {}
    Cache cache;
    erased::erased_layer<Cache> shown;
  };

  void open() {
    erased::any_index* const index = behind_->index();
    if (index == nullptr)
      throw error("a cache cannot be measured in front of an index on " + behind_->medium(),
                  "measure the index alone on it");
    open_.emplace(*index, options_);
  }

  std::unique_ptr<subject> behind_;
  cache::options options_;
  std::optional<opened> open_;
};

// The description of a cache like that in front of the index that is the first argument of `given`.
template <class Cache>
[[nodiscard]] index_description describe_cached(const spec& given, const cache::options& o, const std::string& what) {
  const index_description& behind = find_index(given.arguments.front());
  if (behind.peer || behind.place != placement::any_medium)
    throw error("a cache cannot be put in front of " + behind.name, "name an index of pmlab");
  index_description made = behind;
  made.what = what + " in front of " + behind.name;
  made.own_threads = behind.own_threads + o.fillers + o.helpers;
  made.make = [o, &behind](const subject_setup& setup) -> std::unique_ptr<subject> {
    cache::options sized = o;
    sized.expected_entries = setup.records;
    return std::make_unique<cached_subject<Cache>>(behind.make(setup), sized);
  };
  return made;
}

}  // namespace pmlab::bench
