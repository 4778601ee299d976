// Persisting: objects, not pointers to them, and whole ranges.
#include <pmlab/media/dram.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pmem.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "support/restartable_medium.hpp"

namespace pmlab::tests {
namespace {

template <class Medium, class T>
concept can_be_persisted = requires(Medium& medium, T& object) {
  media::persist(medium, object);
};
template <class Medium, class T>
concept can_be_flushed = requires(Medium& medium, T& object) {
  media::flush(medium, object);
};

struct node {
  std::uint64_t words[10];
};

// A9: flush(medium, pointer) would write back the pointer's own line. It does not compile.
TEST(persist, A9_a_raw_pointer_cannot_be_flushed) {
  const auto check = []<class Medium>() {
    static_assert(can_be_flushed<Medium, node> && can_be_persisted<Medium, node>);
    static_assert(can_be_flushed<Medium, std::uint64_t> && can_be_flushed<Medium, std::uint64_t[4]>);
    static_assert(can_be_flushed<Medium, media::pointer<node>>, "a stored pointer is an object of the medium");
    static_assert(!can_be_flushed<Medium, node*> && !can_be_persisted<Medium, node*>);
    static_assert(!can_be_flushed<Medium, const node*> && !can_be_flushed<Medium, node* const>);
    static_assert(!can_be_flushed<Medium, void*> && !can_be_flushed<Medium, std::nullptr_t>);
    static_assert(!can_be_flushed<Medium, void()>);
  };
  check.operator()<media::dram>();
  check.operator()<media::pmem>();
  check.operator()<restartable_medium>();
}

// C12: a range covers every line that it touches, the last one too, however it lies.
TEST(persist, C12_a_range_that_crosses_lines_has_all_of_them) {
  alignas(64) std::array<std::byte, 1024> area{};
  for (std::size_t start = 0; start < 200; ++start)
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
      std::set<std::uintptr_t> wanted;
      for (std::size_t i = 0; i < bytes; ++i)
        wanted.insert(reinterpret_cast<std::uintptr_t>(area.data() + start + i) / media::cache_line_bytes *
                      media::cache_line_bytes);
      std::vector<std::uintptr_t> got;
      media::for_each_line(area.data() + start, bytes, [&](std::uintptr_t line) { got.push_back(line); });
      ASSERT_EQ(got, std::vector<std::uintptr_t>(wanted.begin(), wanted.end())) << start << ", " << bytes;
    }
}

// C12: the same through a medium: nothing of an object that lies across lines stays behind.
TEST(persist, C12_an_object_across_lines_is_durable_whole) {
  restartable_medium medium;
  restartable_medium::publication change(medium);
  auto* const block = static_cast<std::uint64_t*>(change.allocate(512, 64));
  change.commit();
  medium.watch();
  for (std::size_t start = 0; start < 40; ++start) {
    auto& object = *reinterpret_cast<node*>(block + start);
    for (std::uint64_t& word : object.words) ++word;
    EXPECT_FALSE(medium.is_written_back());
    media::persist(medium, object);
    EXPECT_TRUE(medium.is_written_back()) << start;
  }
}

}  // namespace
}  // namespace pmlab::tests
