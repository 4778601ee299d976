// One index of a run, with all that the run knows about it.
#pragma once

#include <pmlab/bench/key_space.hpp>
#include <pmlab/bench/model.hpp>
#include <pmlab/bench/pool_files.hpp>
#include <pmlab/bench/registry.hpp>
#include <pmlab/bench/subject.hpp>

#include <memory>
#include <optional>

namespace pmlab::bench {

struct contender {
  const index_description* description = nullptr;
  std::optional<pool_file> pool;  // declared first: the file goes after the subject has closed it
  std::unique_ptr<subject> index;
  key_space keys;
  std::unique_ptr<model> expected;  // null: answers are not checked
  space_used space;                 // after the last phase that changed it
};

}  // namespace pmlab::bench
