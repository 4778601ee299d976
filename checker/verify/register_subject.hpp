// One line makes an index a subject of verification:
//
//   const bool registered = pmlab::verify::register_subject<pmlab::indexes::cceh>();
//
// pmlab's own files with that line are compiled twice: by `pmlab_simulate`, into a shared object whose index runs on
// the simulated machine, and as it is, into one whose index opens the images of crashes. Each compiles its own half
// only, which `compiled_parts` selects. Another shared object has both halves.
#pragma once

#include "checker/verify/image_medium.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#if defined(PMLAB_SIMULATED)
#include "checker/simulator/calls.hpp"
#include "checker/simulator/simulated.hpp"
#include <pmlab/media/dram.hpp>
#endif

extern "C" {
// In the program. Adds the parts of `part` to the subject of its name. A shared object that is loaded later takes
// precedence.
void pmlab_verify_register(const pmlab::verify::subject* part);
// A combination that is loaded later goes before an earlier one of its name.
void pmlab_verify_register_combination(const pmlab::verify::combination* made);
}

namespace pmlab::verify {

#if defined(PMLAB_SIMULATED)
// DRAM for short and frequent histories, as simulator::simulated is PM for them. It has as little space as the
// machine's limit allows.
class machine_dram : public media::dram {
 public:
  static constexpr media::index_sizes sizes = media::sizes_for_short_histories(64);

  class publication : public media::dram::publication {
   public:
    explicit publication(machine_dram& medium) noexcept : media::dram::publication(medium) {}
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      return pmlab_machine_has_room(bytes) ? media::dram::publication::allocate(bytes, alignment) : nullptr;
    }
  };

  machine_dram() = default;
  [[nodiscard]] std::size_t shards(std::size_t /*usual*/) const noexcept { return 2; }
};
#endif

// The parts of an index that a shared object compiles in addition to its half on the machine's persistent memory. Each
// is another instantiation of the whole index.
struct compiled_parts {
  bool image = true;        // opens images: false where the program has the same index
  bool in_dram = true;      // may be part of a combination, in DRAM
  bool keeps_room = false;  // as subject::keeps_room
};

// `is_mutant`: the index has a name that the program knows, and another recovery than the one of that name.
template <template <class...> class Index, compiled_parts Compiled = compiled_parts{}>
bool register_subject(bool is_mutant = false) {
#if defined(PMLAB_SIMULATED)
  using medium = simulator::simulated;
#else
  using medium = image_medium;
#endif
  using index = Index<medium>;
  subject part;
  part.name = std::string(index::layout_name);
  part.ordered = part.image_is_ordered = indexes::ordered_index<index>;
  part.loads = indexes::loadable_index<index>;
  part.is_mutant = is_mutant;
  part.keeps_room = Compiled.keeps_room;
  if constexpr (requires { index::shared_by_hosts; }) part.shared_by_hosts = index::shared_by_hosts;
  if constexpr (requires { index::survives_power_failure; })
    part.survives_power_failure = index::survives_power_failure;
  if constexpr (requires { index::is_bounded; }) part.fills_up = index::is_bounded;
  if constexpr (requires(std::uint64_t hash) { index::key_of_hash(hash); })
    part.key_of_hash = [](std::uint64_t hash) { return index::key_of_hash(hash); };
#if defined(PMLAB_SIMULATED)
  constexpr bool opens_images = Compiled.image;
  part.open_simulated = []() -> std::unique_ptr<target> { return std::make_unique<typed_target<index, medium>>(); };
  if constexpr (Compiled.in_dram)
    part.open_in_dram = []() -> std::unique_ptr<target> {
      return std::make_unique<typed_target<Index<machine_dram>, machine_dram>>();
    };
#else
  constexpr bool opens_images = true;
#endif
  if constexpr (opens_images)
    part.open_image = [](image_medium& image) -> std::unique_ptr<target> {
      return std::make_unique<typed_target<Index<image_medium>, image_medium>>(image);
    };
  pmlab_verify_register(&part);
  return true;
}

}  // namespace pmlab::verify
