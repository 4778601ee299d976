// Indexes that are closed and opened again; several of them in one medium; names and layouts that do not fit.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests::durable_test {
namespace {

using indexes::outcome;

template <class Setting>
class durable : public testing::Test {
 protected:
  medium_under_test<typename Setting::medium> under_;
};

TYPED_TEST_SUITE(durable, durable_settings, setting_name);

// F18, F14, C5, A3, A8: after a clean close (locks in DRAM are gone, the pool is mapped again) everything is present
// and works, the first search first.
TYPED_TEST(durable, F18_F14_C5_A3_A8_reopening_gives_everything_back_and_works_on) {
  contents model;
  for (std::uint64_t round = 1; round <= 6; ++round) {
    {
      auto index = TypeParam::index::open(*this->under_.medium);
      if (!model.empty()) {
        ASSERT_EQ(index.find(model.begin()->first), model.begin()->second);
      }
      ASSERT_EQ(compare_all(index, model), "") << "round " << round;
      ASSERT_EQ(run_differential(index, model, {.seed = round, .operations = 3000, .key_count = 2000}), "");
    }
    this->under_.reopen();
  }
}

// A6: an index that was made and never used opens as an empty one.
TYPED_TEST(durable, A6_an_empty_index_reopens_empty) {
  for (int round = 0; round < 3; ++round) {
    {
      auto index = TypeParam::index::open(*this->under_.medium);
      EXPECT_EQ(compare_all(index, {}), "");
    }
    this->under_.reopen();
  }
}

TYPED_TEST(durable, several_indexes_live_in_one_medium) {
  contents first;
  contents second;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    {
      auto a = TypeParam::index::open(*this->under_.medium, "first");
      auto b = TypeParam::index::open(*this->under_.medium, "second");
      ASSERT_EQ(run_differential(a, first, {.seed = round, .operations = 800, .key_count = 600}), "");
      ASSERT_EQ(run_differential(b, second, {.seed = round + 9, .operations = 800, .key_count = 600}), "");
      ASSERT_EQ(compare_all(a, first), "");
      EXPECT_EQ(this->under_.medium->used().allocated_bytes > 0, true);
    }
    this->under_.reopen();
  }
}

// Reopening preserves the content: no block is lost by a close, and none is allocated by an open.
TYPED_TEST(durable, A4_reopening_allocates_nothing) {
  {
    auto index = TypeParam::index::open(*this->under_.medium);
    contents model;
    ASSERT_EQ(run_differential(index, model, {.operations = 3000, .key_count = 2000}), "");
  }
  const auto used = this->under_.medium->used().allocated_bytes;
  for (int round = 0; round < 3; ++round) {
    this->under_.reopen();
    auto index = TypeParam::index::open(*this->under_.medium);
    EXPECT_EQ(this->under_.medium->used().allocated_bytes, used);
  }
}

TYPED_TEST(durable, another_layout_or_version_is_an_error_that_names_the_index) {
  using index_type = typename TypeParam::index;
  const auto refuses = [&](const char* name) {
    try {
      auto index = index_type::open(*this->under_.medium, name);
      return std::string("opened");
    } catch (const error& e) {
      return std::string(e.what());
    }
  };
  (void)this->under_.medium->named_root("newer", index_type::layout_name, index_type::layout_version + 1);
  (void)this->under_.medium->named_root("other", "something_else", index_type::layout_version);
  EXPECT_NE(refuses("newer").find("'newer'"), std::string::npos) << refuses("newer");
  EXPECT_NE(refuses("other").find("something_else"), std::string::npos) << refuses("other");
  EXPECT_NE(refuses("").find("name"), std::string::npos) << refuses("");
  EXPECT_NE(refuses("a name that is far too long for the table of roots").find("name"), std::string::npos);
  // The medium is as good as before.
  auto index = index_type::open(*this->under_.medium);
  EXPECT_EQ(index.insert(1, 1), outcome::inserted);
}

TYPED_TEST(durable, too_many_indexes_are_an_error) {
#if defined(PMLAB_TESTS_OF_STRINGS)
  constexpr std::size_t most = media::root_limit / 2;  // each has two roots
#else
  constexpr std::size_t most = media::root_limit;
#endif
  for (std::size_t i = 0; i < most; ++i) {
    auto index = TypeParam::index::open(*this->under_.medium, "index" + std::to_string(i));
    ASSERT_EQ(index.insert(i, i), outcome::inserted);
  }
  EXPECT_THROW((void)TypeParam::index::open(*this->under_.medium, "one more"), error);
  this->under_.reopen();
  for (std::size_t i = 0; i < most; ++i) {
    auto index = TypeParam::index::open(*this->under_.medium, "index" + std::to_string(i));
    ASSERT_EQ(compare_all(index, {{i, i}}), "");
  }
}

// A5: the word and the version that commits it are taken for one line's, so they must be.
TYPED_TEST(durable, A5_the_entry_of_a_root_lies_in_one_line) {
  const auto word = reinterpret_cast<std::uintptr_t>(this->under_.medium->named_root("one", "test", 1).word);
  const std::uintptr_t entry = word - offsetof(media::root_entry, word);
  EXPECT_EQ(entry % media::cache_line_bytes, 0U);
}

template <class Setting>
class reopened_in_one_process : public testing::Test {
 protected:
  medium_under_test<typename Setting::medium> under_;
};
TYPED_TEST_SUITE(reopened_in_one_process, all_settings, setting_name);

// The index object is destroyed, the medium stays: DRAM keeps its content, too.
TYPED_TEST(reopened_in_one_process, the_medium_keeps_the_index) {
  contents model;
  for (std::uint64_t round = 1; round <= 4; ++round) {
    auto index = TypeParam::index::open(*this->under_.medium);
    ASSERT_EQ(compare_all(index, model), "");
    ASSERT_EQ(run_differential(index, model, {.seed = round, .operations = 1500, .key_count = 1000}), "");
  }
}

}  // namespace
}  // namespace pmlab::tests::durable_test
