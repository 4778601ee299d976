// One index of a run, with all that the run knows about it.
#pragma once

#include "bench/catalogue/pool_files.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/catalogue/subject.hpp"
#include "bench/engine/key_space.hpp"
#include "bench/engine/model.hpp"

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
