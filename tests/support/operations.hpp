// The operations of verify/, by their short names.
#pragma once

#include "checker/verify/operations.hpp"
#include <pmlab/base/random.hpp>

namespace pmlab::tests {

using verify::action;
using verify::all_key_sets;
using verify::answer;
using verify::contents;
using verify::entries_of;
using verify::expect;
using verify::key_set;
using verify::key_state;
using verify::make_keys;
using verify::perform;
using verify::put_state;
using verify::random_action;
using verify::state_in;
using verify::step;
using verify::step_mix;
using verify::to_string;
using verify::wholly_or_not_at_all;

using random = splitmix64;

}  // namespace pmlab::tests
