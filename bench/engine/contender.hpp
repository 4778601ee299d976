// One index of a run, with all that the run knows about it.
#pragma once

#include "tools/bench/key_space.hpp"
#include "tools/bench/model.hpp"
#include "tools/catalogue/pool_files.hpp"
#include "tools/catalogue/registry.hpp"
#include "tools/catalogue/subject.hpp"

#include <memory>
#include <optional>

namespace pmlab::bench {

struct contender {
  const index_description* description = nullptr;
  std::optional<pool_file> pool;  // declared first: the file is removed after the subject has closed it
  std::unique_ptr<subject> index;
  key_space keys;
  std::unique_ptr<model> expected;  // null: answers are not checked
  space_used space;                 // after the last phase that changed it
};

}  // namespace pmlab::bench
