// strings(INDEX,...) in the benchmark: string keys over any index that offers erased/any_index.hpp. The benchmark still
// addresses keys by their numbers.
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/erased/any_medium.hpp>
#include "bench/catalogue/layer_hooks.hpp"
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/pool_files.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/strings_keys.hpp"
#include "bench/catalogue/subject.hpp"
#if !defined(PMLAB_SIMULATED)
#include <pmlab/media/pmem.hpp>
#endif
#include <pmlab/strings/numbered.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/values.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::bench {
namespace {

template <class Words, class Values>
class strings_subject final : public subject {
  using index_type = strings::numbered<erased::attached_medium, Words, Values, string_keys>;

 public:
  strings_subject(std::unique_ptr<subject> behind, std::string root_name, string_keys keys)
      : behind_(std::move(behind)), root_name_(std::move(root_name)), keys_(std::move(keys)) {
    open();
  }

  [[nodiscard]] std::string medium() const override { return behind_->medium(); }
  [[nodiscard]] bool durable() const override { return behind_->durable(); }

  work_done run(const work& w) override {
    erased::any_medium& medium = open_->medium.behind();
    if (medium.wants_hooks()) return execute(open_->index, w, hooks{medium});
    return execute(open_->index, w, no_hooks{});
  }

  space_used space() override {
    space_used sum = behind_->space();
    const indexes::index_stats own = open_->index.stats();
    sum.entries = own.entries;
    return sum;
  }
  std::optional<media::counts> accesses() override { return behind_->accesses(); }
  void reset_accesses() override { behind_->reset_accesses(); }
  std::optional<persist_sums> persists() override { return behind_->persists(); }
  std::optional<media_sums> media_bytes() override { return behind_->media_bytes(); }
  [[nodiscard]] std::optional<media::persistence_domain> persistence() const override { return behind_->persistence(); }
  std::optional<media::emulation_counts> emulation() override { return behind_->emulation(); }
  layer_statistics layer() override { return behind_->layer(); }

  void reopen() override {
    open_.reset();
    behind_->reopen();
    open();
  }

 private:
  struct opened {
    opened(erased::any_index& words, const std::string& root_name, const string_keys& keys)
        : medium(words.medium()),
          index(index_type::open(
              medium, root_name, [&words] { return Words::open(words); }, keys)) {}
    erased::attached_medium medium;
    index_type index;
  };

  void open() {
    erased::any_index* const index = behind_->index();
    if (index == nullptr)
      throw error("strings cannot be measured over an index on " + behind_->medium(), "measure the index alone on it");
    open_.emplace(*index, root_name_, keys_);
  }

  std::unique_ptr<subject> behind_;
  std::string root_name_;
  string_keys keys_;
  std::optional<opened> open_;
};

// A pool of numbers alone is none of string keys.
void refuse_pool_of_numbers([[maybe_unused]] const std::string& root_name,
                            [[maybe_unused]] const subject_setup& setup) {
#if !defined(PMLAB_SIMULATED)
  if (!setup.medium.in_pool() || setup.pool_bytes != 0) return;
  refuse_pool_without(root_name + std::string(strings::state_suffix), setup.medium.path,
                      media::pmem(setup.medium.path, {.huge_pages = false, .bypass_msync = true}).roots());
#endif
}

// `parts_keys`: into words of the index, also if string keys could have a tree of their own.
template <class Values>
std::unique_ptr<subject> make(const index_description& below, const string_keys& keys, bool parts_keys,
                              const subject_setup& setup) {
  refuse_pool_of_numbers(below.root_name, setup);
  std::unique_ptr<subject> behind = below.make(setup);
  const erased::any_index* const index = behind->index();
  indexes::string_form form = index == nullptr ? indexes::string_form::hashes : index->string_form();
  if (parts_keys && form == indexes::string_form::tree) form = indexes::string_form::trie;
  return erased::with_attached(form, [&]<class Words>(std::type_identity<Words>) {
    return std::unique_ptr<subject>(
        std::make_unique<strings_subject<Words, Values>>(std::move(behind), below.root_name, keys));
  });
}

index_description describe(const spec& given) {
  constexpr std::array<std::string_view, 4> known = {"keys", "bytes", "values", "form"};
  given.allow(known);
  if (given.arguments.size() != 1)
    throw error("strings() is over one index, and there are " + std::to_string(given.arguments.size()),
                "write strings(INDEX,keys=...); a path in it has no comma: link or rename the file");
  const std::string_view values = given.option("values").value_or(strings::word_values::name);
  if (values != strings::word_values::name && values != strings::blob_values::name)
    throw error("there are no values '" + std::string(values) + "'", "write values=words or values=blobs");
  const string_keys keys(given);
  const index_description& below = find_index(given.arguments.front());
  if (below.peer || below.place != placement::any_medium || below.kept == keeps::nothing)
    throw error("strings cannot be kept over " + below.name, "name an index of pmlab");
  const std::string_view form = given.option("form").value_or("fastest");
  if (form != "fastest" && form != "trie")
    throw error("string keys have no form '" + std::string(form) + "'", "write form=trie, or leave it out");
  const bool parts_keys = form == "trie";
  if (parts_keys && !below.ordered) throw error(below.name + " has no order for a trie", "leave form=trie out");
  index_description made = below;
  made.what = "keys of " + std::to_string(keys.bytes()) + " bytes over " + below.name;
  // A record, its rounding, and the overhead of a trie.
  constexpr std::uint64_t besides = 192;
  constexpr std::uint64_t of_a_blob = 320;
  made.pool_bytes_per_entry =
      2 * below.pool_bytes_per_entry + keys.bytes() + besides + (values == strings::blob_values::name ? of_a_blob : 0);
  made.make = [&below, keys, parts_keys, words = values == strings::word_values::name](const subject_setup& setup) {
    return words ? make<strings::word_values>(below, keys, parts_keys, setup)
                 : make<strings::blob_values>(below, keys, parts_keys, setup);
  };
  return made;
}

const registration registered(combination{
    "strings", "strings(INDEX,keys=binary|decimal|FILE,bytes=32,values=words|blobs,form=trie)",
    "keys and values of any length over an index (docs/strings.md)", describe});

}  // namespace
}  // namespace pmlab::bench
