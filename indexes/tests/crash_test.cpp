// Crashes of a single thread's run, at every flush, fence and publication, with every image that they may leave.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/child_process.hpp"
#include "support/crash_medium.hpp"
#include "support/crash_scenario.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {
namespace {

template <class Kind>
class crash : public testing::Test {
 protected:
  using index = typename Kind::template index<crash_medium>;

  // In a child, so that an image on which recovery faults or hangs is a failure with a seed like any other.
  void run(crash_options options, std::uint64_t rounds_in_a_plain_run) {
    for (const std::uint64_t seed : seeds(rounds_in_a_plain_run)) {
      options.seed = seed;
      const child_end end = run_in_child(
          [&] {
            crash_medium medium;
            const crash_result result = crash_scenario<index, index, crash_medium>(options).run(medium);
            return result.violation.empty() ? "clean: " + result.describe() : result.violation;
          },
          std::chrono::minutes(5));
      ASSERT_TRUE(end.end == child_end::how::returned && end.text.starts_with("clean: "))
          << end.describe() << "\nreplay: " << replay_command(seed);
      std::printf("  seed %llu: %s\n", static_cast<unsigned long long>(seed), end.text.c_str());
    }
  }

  // Enough entries that nodes split, segments split and directories double in the part that is examined.
  static crash_options around_changes_of_shape(key_set keys) {
    crash_options options;
    options.keys = keys;
    options.only_around_changes_of_shape = true;
    options.one_operation_in = 200;
    options.images_per_point = 40;
    options.images_in_all = 1500;
    options.crash_recovery_one_in = 3;
    return options;
  }
};

TYPED_TEST_SUITE(crash, all_kinds, setting_name);

// A1, A6, F9, C4: the first crash points lie in the making of the index; new blocks hold garbage, so that a field that
// is never flushed is noticed. A2, C10: recoveries crash, too. A3, C5, F14: the writer's locks are held at every crash.
// A7, A8, C3: the image is opened at another address, and its original memory is unmapped.
TYPED_TEST(crash, A1_A2_A3_A6_A7_A8_F9_C3_C4_C5_C10_F14_first_operations_on_a_new_index) {
  crash_options options;
  options.operations = 12;
  options.key_count = 8;
  options.images_per_point = 64;
  options.crash_recovery_one_in = 2;
  this->run(options, 4);
}

// F2: an insert that was cut off leaves nothing that a later delete misses. C2: nor a slot that is dead for ever.
TYPED_TEST(crash, F2_C2_A5_operations_that_were_cut_off_leave_nothing_behind) {
  crash_options options;
  options.operations = 150;
  this->run(options, 3);
}

// F1, F12: deletes shift, and every line that they shift is flushed.
TYPED_TEST(crash, F1_last_shifted_line_is_flushed) {
  crash_options options;
  options.preload = 40;
  options.operations = 150;
  options.mix = {.insert = 25, .update = 5, .upsert = 5, .erase = 60};
  this->run(options, 3);
}

// F8, F2: equal neighbouring values never look like the trace of a crash.
TYPED_TEST(crash, F8_ascending_and_descending_keys) {
  for (const key_set keys : {key_set::sequential, key_set::descending, key_set::extremes}) {
    crash_options options;
    options.keys = keys;
    options.operations = 80;
    this->run(options, 1);
  }
}

// F10, C9: the result of a read in the middle of a change survives the crash that interrupts the change.
TYPED_TEST(crash, F10_C9_reads_that_were_answered_stay_true) {
  crash_options options;
  options.operations = 60;
  options.key_count = 80;
  options.preload = 40;
  options.mix = {.insert = 30, .update = 25, .upsert = 15, .erase = 30};
  options.images_per_point = 6;
  options.read_one_in = 2;
  this->run(options, 2);
}

// The reference index has no shape that changes.
template <class Kind>
class crash_of_splits : public crash<Kind> {};
TYPED_TEST_SUITE(crash_of_splits, offered_kinds, setting_name);

// F3, F5: a split that the parent does not know yet is adopted, and later splits of it work; root splits as well.
// C1, C3, C8, C14: segments and directories, doubled or not, are found whole, and nothing leaks.
TYPED_TEST(crash_of_splits, F3_F5_C1_C3_C8_C14_A4_splits_among_neighbouring_keys) {
  crash_options options = this->around_changes_of_shape(key_set::dense);
  options.key_count = 3000;
  options.operations = 2800;
  options.mix = {.insert = 75, .update = 3, .upsert = 15, .erase = 5};
  this->run(options, 2);
}

TYPED_TEST(crash_of_splits, F3_F5_C1_C3_C8_C14_A4_splits_among_random_keys) {
  crash_options options = this->around_changes_of_shape(key_set::anywhere);
  options.key_count = 9000;
  options.preload = 1300;
  // A segment of a hash table takes a thousand entries before it splits, a tree's node two dozen.
  options.operations = is_ordered<TypeParam> ? 1500 : 5000;
  options.one_operation_in = 500;
  options.mix = {.insert = 85, .update = 2, .upsert = 8, .erase = 2};
  this->run(options, 2);
}

// F4: nodes that empty, and whatever is done about them.
TYPED_TEST(crash_of_splits, F4_nodes_that_deletes_empty) {
  crash_options options = this->around_changes_of_shape(key_set::dense);
  options.key_count = 400;
  options.preload = 400;
  options.operations = 1200;
  options.one_operation_in = 4;
  options.mix = {.insert = 10, .update = 2, .upsert = 3, .erase = 80};
  this->run(options, 2);
}

}  // namespace
}  // namespace pmlab::tests
