// The indexes that the program knows.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/subject.hpp"
#include "bench/workload/operation.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::media {
class pmem;
}

namespace pmlab::bench {

// Where an index can live.
enum class placement : std::uint8_t {
  any_medium,  // in the medium that the user names
  own_dram,    // in DRAM, on any medium
  own_pool,    // in a pool of its own library: needs medium pmem:PATH
};

// Whether an index keeps its entries: the null index does not, and its answers are never checked.
enum class keeps : std::uint8_t { entries, nothing };

struct index_description {
  std::string name;
  std::string root_name{};  // name of its root in a pool; of several roots, of the one that recovery uses
  std::string what;         // one line
  std::string threading;    // thread safety, as text
  bool ordered = false;
  indexes::string_form string_form = indexes::string_form::hashes;
  keeps kept = keeps::entries;
  bool peer = false;  // a third-party container, as packaged
  placement place = placement::any_medium;
  // Room that a pool needs for each entry, generously: it sizes pools, results are measured.
  std::uint64_t pool_bytes_per_entry = 64;
  // Why operations of this kind cannot be measured with this many threads; empty: they can.
  std::function<std::string(workload::operation_kind, unsigned threads)> refusal{};
  std::function<std::unique_ptr<subject>(const subject_setup&)> make{};
  unsigned own_threads = 0;  // that it starts itself
  // The layout version in a pool's table of roots; 0: it has no root of its own.
  std::uint64_t layout_version = 0;
  // Opens the root `name` of a pool as this index, or makes it; empty: it cannot be in a pool of pmlab. The pool
  // outlives the result. Throws pmlab::error: as `open` of the index does.
  std::function<std::shared_ptr<erased::any_index>(media::pmem&, std::string_view name)> open_root{};
  // Gives the entries that a root which does not open still leads to; empty: the index has no such way. Throws
  // pmlab::error where it leads no further.
  using each_entry = std::function<void(indexes::key_type, indexes::value_type)>;
  std::function<void(media::pmem&, std::string_view name, const each_entry&)> salvage_root{};
};

// Combinations of indexes: NAME(INDEX,...,KEY=VALUE,...).
struct combination {
  std::string name;
  std::string form;  // as a user writes it
  std::string what;  // one line
  // Throws pmlab::error: an unknown option, an index that cannot be used for it.
  std::function<index_description(const spec&)> describe{};
};

// In the order of their names, pmlab's own before its peers. Those that hosts share are not among them.
[[nodiscard]] std::vector<const index_description*> all_indexes();
// Those that several hosts can share, in the order of their names. They run on simulated media alone.
[[nodiscard]] std::vector<const index_description*> host_indexes();
[[nodiscard]] bool is_shared_by_hosts(const index_description& index) noexcept;
// The error of one of them, called `index`, on a medium of one host.
[[nodiscard]] error has_one_host(std::string_view index, const medium_spec& medium);

// The combinations in the order of their names.
[[nodiscard]] std::vector<const combination*> all_combinations();

// The index of this name, or the combination for a specification like cache(cceh,mode=adaptive): its name is the
// specification as it was written. Throws pmlab::error: there is none of this name (with the nearest one), or it is
// left out of this build (with the package); the specification is invalid.
[[nodiscard]] const index_description& find_index(std::string_view name);

// Adds an index to the program during its start; see bench/catalogue/register_index.hpp.
class registration {
 public:
  explicit registration(index_description description);
  // One of host_indexes.
  struct by_hosts {};
  registration(index_description description, by_hosts);
  explicit registration(combination made);
};

}  // namespace pmlab::bench
