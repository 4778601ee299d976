// One index of a run, with all that the run knows about it.
#pragma once

#include "bench/catalogue/pool_files.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"
#include "bench/engine/key_space.hpp"
#include "bench/engine/model.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::bench {

// The profile of a simulated medium as subjects know it, whatever its name: in the heap of a subject a longer name
// would move all that it allocates behind it.
inline constexpr std::string_view profile_of_subjects = "device";

struct contender {
  const index_description* description = nullptr;
  std::optional<pool_file> pool;  // declared first: the file is removed after the subject has closed it
  std::unique_ptr<subject> index;
  key_space keys;
  std::unique_ptr<model> expected;  // null: answers are not checked
  space_used space;                 // after the last phase that changed it
  bool has_module_counts = false;   // the Optane modules behind its pool are asked what they did

  // Where it lives: `asked`, unless it has a place of its own.
  [[nodiscard]] std::string medium(const medium_spec& asked) const {
    medium_spec known = asked;
    if (asked.simulated) known.profile = profile_of_subjects;
    std::string its = index->medium();
    return asked.simulated && its == known.text() ? asked.text() : its;
  }
};

}  // namespace pmlab::bench
