// The seed of the round that runs: for subjects whose options differ from round to round.
#pragma once

#include <cstdint>

// Defined by the program, in which one round runs at a time.
extern "C" std::uint64_t pmlab_verify_seed_of_round();

namespace pmlab::verify {

// A round begins.
void set_seed_of_round(std::uint64_t seed);

}  // namespace pmlab::verify
