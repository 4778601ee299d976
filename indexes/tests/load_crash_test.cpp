// Crashes in the middle of a load: a prefix of it is present, each entry complete, nothing leaks, and it can be loaded
// again. The test also proves itself: it fails on a medium with a planted defect.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/child_process.hpp"
#include "support/comparison.hpp"
#include "support/crash_medium.hpp"
#include "support/crash_scenario.hpp"
#include "support/judged_images.hpp"
#include "support/loadable.hpp"
#include "support/mutant_medium.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {
namespace {

using indexes::entry;

template <class Kind>
class load_crash : public testing::Test {
 protected:
  using recovered = typename Kind::template index<crash_medium>;

  // Loads `entries` into `medium` in two calls, over the previous entries; examines images at every event of it.
  // Returns the first violation, or how many images there were.
  template <class Medium>
  std::string run(Medium& medium, const std::vector<entry>& before, const std::vector<entry>& entries) {
    crash_medium& machine = detail::machine_of(medium);
    auto index = Kind::template index<Medium>::open(medium);
    for (const entry& e : before) index.insert(e.key, e.value);
    before_ = contents_of(before);
    const std::size_t half = entries.size() / 2;
    std::size_t answered = 0;
    judged_images images(machine, 7, [&](crash_medium& image) { return judge(image, entries, answered); });
    if (index.load(std::span(entries).first(half)) != half) return "no space";
    answered = half;
    machine.event();
    if (index.load(std::span(entries).subspan(half)) != entries.size() - half) return "no space";
    answered = entries.size();
    machine.event();
    return images.verdict();
  }

  // `answered`: so many entries are persisted.
  std::string judge(crash_medium& image, const std::vector<entry>& entries, std::size_t answered) {
    auto index = recovered::open(image);
    std::size_t there = 0;
    while (there < entries.size() && index.find(entries[there].key)) ++there;
    if (there < answered) return "an entry that was loaded is lost";
    contents model = before_;
    for (std::size_t i = 0; i < there; ++i) model.emplace(entries[i].key, entries[i].value);
    if (std::string wrong = compare_all(index, model); !wrong.empty()) return wrong;
    if (index.stats().medium_bytes != image.used().allocated_bytes) return "a leak, or a block used that is free";
    if (index.load(entries) != entries.size()) return "no space after the crash";
    for (const entry& e : entries) model.emplace(e.key, e.value);
    return compare_all(index, model);
  }

  // In a child: a recovery that crashes is a violation.
  template <class Medium, class... Arguments>
  std::string verdict(const std::vector<entry>& before, const std::vector<entry>& entries, Arguments... arguments) {
    const child_end end = run_in_child(
        [&] {
          Medium medium(arguments...);
          return run(medium, before, entries);
        },
        std::chrono::seconds(60));
    return end.end == child_end::how::returned ? end.text : end.describe();
  }

 private:
  contents before_;
};
TYPED_TEST_SUITE(load_crash, loadable_kinds, setting_name);

// More than one row of leaves, and leaves that are full of other entries.
TYPED_TEST(load_crash, a_first_part_is_there) {
  for (const key_set kind : {key_set::anywhere, key_set::extremes}) {
    const std::vector<entry> entries = sorted_entries(kind, 420);
    std::vector<entry> before;
    EXPECT_TRUE((this->template verdict<crash_medium>(before, entries)).starts_with("clean: ")) << to_string(kind);
    for (std::size_t i = 150; i < entries.size(); i += i < 190 ? 1 : 60) before.push_back({entries[i].key, 1});
    const std::string said = this->template verdict<crash_medium>(before, entries);
    EXPECT_TRUE(said.starts_with("clean: ")) << to_string(kind) << ": " << said;
  }
}

TYPED_TEST(load_crash, what_the_medium_forgets_is_noticed) {
  const std::vector<entry> entries = sorted_entries(key_set::anywhere, 900);
  for (const mutation what : {mutation::flush_dropped, mutation::fence_dropped, mutation::flush_of_wrong_line,
                              mutation::flush_misses_last_line, mutation::publication_not_durable})
    for (const std::uint64_t every : {1U, 5U}) {
      // Not that many publications.
      if (what == mutation::publication_not_durable && every != 1) continue;
      const std::string said = this->template verdict<mutant_medium>({}, entries, mutation_plan{what, every, 0});
      EXPECT_FALSE(said.starts_with("clean: ")) << to_string(what) << " at every " << every << "th chance";
    }
}

}  // namespace
}  // namespace pmlab::tests
