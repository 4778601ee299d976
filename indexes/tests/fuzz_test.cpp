// Random operations on every index and medium, side by side with a std::map.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/differential.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {
namespace {

template <class Setting>
class fuzz : public testing::Test {
 protected:
  // One index through several kinds of keys, one after the other: later ones run on the entries of earlier ones.
  void run(std::size_t operations, std::size_t key_count, const step_mix& mix, std::uint64_t rounds_in_a_plain_run) {
    for (const std::uint64_t seed : seeds(rounds_in_a_plain_run)) {
      medium_under_test<typename Setting::medium> under;
      auto index = Setting::index::open(*under.medium);
      contents model;
      for (const key_set kind : all_key_sets) {
        const std::string wrong = run_differential(
            index, model, {.seed = seed, .operations = operations, .keys = kind, .key_count = key_count, .mix = mix});
        ASSERT_EQ(wrong, "") << "replay: " << replay_command(seed);
      }
    }
  }
};

TYPED_TEST_SUITE(fuzz, all_settings, setting_name);

TYPED_TEST(fuzz, few_keys) { this->run(1500, 40, {}, 4); }
TYPED_TEST(fuzz, many_keys) { this->run(6000, 3000, {.insert = 45, .update = 10, .upsert = 15, .erase = 15}, 1); }
// F1, F17: a node that loses entries as fast as it gets them.
TYPED_TEST(fuzz, F1_F17_mostly_deletes) {
  this->run(2500, 300, {.insert = 25, .update = 5, .upsert = 15, .erase = 50}, 2);
}

}  // namespace
}  // namespace pmlab::tests
