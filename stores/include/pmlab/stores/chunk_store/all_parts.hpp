// All parts of a chunk store in one object.
#pragma once

#include <pmlab/stores/chunk_store/commits.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/discards.hpp>
#include <pmlab/stores/chunk_store/merge_steps.hpp>
#include <pmlab/stores/chunk_store/reads.hpp>
#include <pmlab/stores/chunk_store/recovery.hpp>
#include <pmlab/stores/chunk_store/removals.hpp>
#include <pmlab/stores/chunk_store/volumes.hpp>
#include <pmlab/stores/chunk_store/writers.hpp>
#include <pmlab/stores/chunk_store/writes.hpp>

namespace pmlab::stores::detail::chunk_store {

template <class Core>
struct all_parts : Core,
                   chunk_writers<Core>,
                   commits<Core>,
                   removals<Core>,
                   volumes<Core>,
                   recovery<Core>,
                   reads<Core>,
                   writes<Core>,
                   discards<Core>,
                   merge_steps<Core> {
  using Core::Core;
};

}  // namespace pmlab::stores::detail::chunk_store
