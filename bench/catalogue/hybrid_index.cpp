// hybrid(hash=...,tree=...,...) in the benchmark: over any two indexes that show themselves as erased/any_index.hpp.
#include <pmlab/base/error.hpp>
#include <pmlab/erased/any_index.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/hybrid/specification.hpp>
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::bench {
namespace {

using hybrid::primary;

template <primary Primary>
class hybrid_subject final : public subject {
  using index_type = hybrid::hybrid_index<erased::attached_index, erased::attached_index, Primary>;

 public:
  hybrid_subject(std::unique_ptr<subject> hash, std::unique_ptr<subject> tree, const hybrid::options& o)
      : hash_(std::move(hash)), tree_(std::move(tree)), options_(o) {
    open();
  }

  [[nodiscard]] std::string medium() const override { return the_primary().medium(); }
  [[nodiscard]] bool durable() const override { return the_primary().durable(); }

  work_done run(const work& w) override {
    erased::any_medium& hash = hash_->index()->medium();
    erased::any_medium& tree = tree_->index()->medium();
    if (hash.wants_hooks() || tree.wants_hooks()) return execute(open_->index, w, both_hooks{hash, tree});
    return execute(open_->index, w, no_hooks{});
  }

  space_used space() override {
    open_->index.wait_until_complete();
    open_->index.settle();
    space_used sum = the_primary().space();
    const space_used of_replica = the_replica().space();
    sum.pm_bytes += of_replica.pm_bytes;
    sum.dram_bytes += of_replica.dram_bytes + open_->index.own_bytes();
    return sum;
  }
  std::optional<media::counts> accesses() override { return std::nullopt; }
  // On a simulated medium the sums are the machine's, of both halves.
  void reset_accesses() override {
    the_primary().reset_accesses();
    the_replica().reset_accesses();
  }
  std::optional<persist_sums> persists() override { return the_primary().persists(); }
  std::optional<media_sums> media_bytes() override {
    std::optional<media_sums> sums = the_primary().media_bytes();
    // An emulated medium has a device of its own.
    if (sums && the_replica().emulation()) *sums += the_replica().media_bytes().value_or(media_sums{});
    return sums;
  }
  [[nodiscard]] std::optional<media::persistence_domain> persistence() const override {
    return the_primary().persistence();
  }
  std::optional<media::emulation_counts> emulation() override {
    const auto of_primary = the_primary().emulation();
    const auto of_replica = the_replica().emulation();
    if (!of_primary || !of_replica) return of_primary;
    return media::emulation_counts{of_primary->charged + of_replica->charged,
                                   of_primary->waited_ns + of_replica->waited_ns,
                                   of_primary->late_ns + of_replica->late_ns};
  }

  layer_statistics layer() override { return open_->index.hybrid_statistics(); }

  // The medium of the other half would miss the begin and end of operations.
  [[nodiscard]] erased::any_index* index() override {
    return the_replica().index()->medium().wants_hooks() ? nullptr : &open_->shown;
  }

  void reopen() override {
    open_.reset();
    the_primary().reopen();
    // A half in DRAM is lost, or compared.
    the_replica().reopen();
    open();
  }

 private:
  struct both_hooks {
    erased::any_medium& hash;
    erased::any_medium& tree;
    void begin() const {
      hash.begin_operation();
      tree.begin_operation();
    }
    void end() const {
      hash.end_operation();
      tree.end_operation();
    }
  };

  struct opened {
    opened(erased::any_index& hash, erased::any_index& tree, const hybrid::options& o)
        : index(index_type::open(hash, tree, o)), shown(index, (Primary == primary::hash ? hash : tree).medium()) {}
    index_type index;
    erased::erased_layer<index_type> shown;
  };

  [[nodiscard]] subject& the_primary() const noexcept { return Primary == primary::hash ? *hash_ : *tree_; }
  [[nodiscard]] subject& the_replica() const noexcept { return Primary == primary::hash ? *tree_ : *hash_; }

  void open() { open_.emplace(*hash_->index(), *tree_->index(), options_); }

  std::unique_ptr<subject> hash_;
  std::unique_ptr<subject> tree_;
  hybrid::options options_;
  std::optional<opened> open_;
};

// Two halves in one pool, or one that is counted: they are measured by themselves.
void check(const subject_setup& setup, const hybrid::description& d) {
  if (setup.medium.counted)
    throw error("a hybrid index cannot be counted on " + setup.medium.text(), "count its halves, each by itself");
  if (setup.medium.in_pool() && !d.hash.in_dram && !d.tree.in_dram)
    throw error("two halves do not fit into the one pool " + setup.medium.text(), "put one of them @dram");
}

std::unique_ptr<subject> make(const hybrid::description& d, const subject_setup& setup) {
  check(setup, d);
  const auto make_half = [&](const hybrid::half& h) {
    subject_setup own = setup;
    if (h.in_dram) own.medium = {};
    std::unique_ptr<subject> made = find_index(h.index).make(own);
    if (made == nullptr || made->index() == nullptr)
      throw error(h.index + " cannot be half of a hybrid index on " + own.medium.text(), "name an index of pmlab");
    return made;
  };
  std::unique_ptr<subject> hash = make_half(d.hash);
  std::unique_ptr<subject> tree = make_half(d.tree);
  if (d.which == primary::hash)
    return std::make_unique<hybrid_subject<primary::hash>>(std::move(hash), std::move(tree), d.how);
  return std::make_unique<hybrid_subject<primary::tree>>(std::move(hash), std::move(tree), d.how);
}

index_description description_of(const hybrid::description& d, std::string what) {
  index_description made;
  made.root_name = d.durable().index;
  made.what = std::move(what);
  made.threading = "any number of threads";
  made.ordered = true;
  made.refusal = [](workload::operation_kind, unsigned) { return std::string(); };
  made.own_threads = d.how.how == hybrid::update::synchronous ? 0 : d.how.updaters;
  made.make = [d](const subject_setup& setup) { return make(d, setup); };
  return made;
}

index_description describe(const spec& given) {
  const hybrid::description d = hybrid::parse_description(given);
  const index_description& hash = find_index(d.hash.index);
  const index_description& tree = find_index(d.tree.index);
  if (hash.peer || tree.peer)
    throw error("a hybrid index cannot be made of " + (hash.peer ? hash.name : tree.name), "name an index of pmlab");
  if (!tree.ordered) throw error(tree.name + " has no order to scan", "name a tree or a list as tree=...");
  index_description made =
      description_of(d, "a hash and a tree over the same data: " + hash.name + " and " + tree.name);
  const index_description& lasting = d.which == primary::hash ? hash : tree;
  made.root_name = lasting.root_name;
  made.pool_bytes_per_entry = lasting.pool_bytes_per_entry;
  return made;
}

const registration registered(combination{
    "hybrid",
    "hybrid(hash=INDEX@pmem|dram,tree=INDEX@pmem|dram,update=sync|async|adaptive,scan=fresh|stale_ok,updaters=1)",
    "a hash for points and a tree for ranges, each where it belongs (docs/hybrid.md)", describe});

registration register_named(const hybrid::named_specification& known) {
  index_description made = description_of(hybrid::parse_description(parse_spec(known.text)), std::string(known.what));
  made.name = known.name;
  return registration(std::move(made));
}
const registration registered_index = register_named(hybrid::named_specifications[0]);
const registration registered_index_plus = register_named(hybrid::named_specifications[1]);

}  // namespace
}  // namespace pmlab::bench
