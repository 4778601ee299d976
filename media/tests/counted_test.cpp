// counted: exact figures for access sequences made by hand.
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::media {
namespace {

static_assert(medium<counted<dram>>);
static_assert(medium<counted<counted<dram>>>);

// Optional operations that a class does not declare are not called: so it must declare exactly those that it has.
struct silent_about_its_operations : dram {
  void begin_operation() {}
  void end_operation() {}
};
static_assert(!medium<silent_about_its_operations>);
struct without_the_operations_it_speaks_of : dram {
  static constexpr optional_parts parts{.operations = true};
};
static_assert(!medium<without_the_operations_it_speaks_of>);
struct silent_about_everything {
  void begin_operation() {}
};
template <class M>
concept told_of_operations = requires(M& m) {
  begin_operation(m);
};
static_assert(told_of_operations<dram> && told_of_operations<counted<dram>>);
static_assert(!told_of_operations<silent_about_everything>, "a missing hook compiles to nothing");
// A wrapper that adds nothing passes all of them on.
struct plain_wrapper : wrapper<counted<dram>> {};
static_assert(plain_wrapper::parts.operations && detail::begins_operations<plain_wrapper> &&
              detail::hears_prefetches<plain_wrapper>);

// 16 device lines of 4 lines each.
struct alignas(4096) page {
  std::array<std::byte, 4096> bytes{};
  [[nodiscard]] const std::byte* at(std::size_t offset) const { return bytes.data() + offset; }
  [[nodiscard]] std::byte* at(std::size_t offset) { return bytes.data() + offset; }
};

TEST(Counted, StartsAtZero) { EXPECT_EQ(counted<dram>().total(), counts{}); }

TEST(Counted, ReadsEachLineOncePerOperation) {
  counted<dram> m;
  const page p;
  m.begin_operation();
  m.annotate_read(p.at(0), 8);      // line 0
  m.annotate_read(p.at(8), 8);      // line 0 again
  m.annotate_read(p.at(60), 8);     // lines 0 and 1: one more line, same device line
  m.annotate_read(p.at(250), 10);   // lines 3 and 4: two device lines
  m.annotate_read(p.at(1024), 0);   // nothing
  m.prefetch(p.at(2048), 1);        // a device line of its own
  m.annotate_read(p.at(2048), 64);  // that read, waited for
  counts expected{.operations = 1, .lines_read = 5, .device_lines_read = 3};
  EXPECT_EQ(m.total(), expected);

  m.begin_operation();
  m.annotate_read(p.at(0), 256);
  expected = {.operations = 2, .lines_read = 9, .device_lines_read = 4};
  EXPECT_EQ(m.total(), expected);
}

TEST(Counted, CombinesDeviceLinesBetweenTwoFences) {
  counted<dram> m;
  page p;
  const page source;
  m.flush(p.at(0), 1);
  m.flush(p.at(128), 65);  // lines 2 and 3 of the same device line
  m.fence();
  EXPECT_EQ(m.total(), (counts{.lines_flushed = 3, .device_lines_written = 1, .fences = 1}));
  m.flush(p.at(0), 1);                  // after the fence the device line is written once more
  m.copy(p.at(64), source.at(0), 256);  // combined with it, and reaches into the next
  m.begin_operation();                  // does not end the line set between fences
  m.flush(p.at(320), 1);
  m.fence();
  EXPECT_EQ(m.total(),
            (counts{.operations = 1, .lines_flushed = 5, .lines_copied = 4, .device_lines_written = 3, .fences = 2}));
}

TEST(Counted, CountsNoFlushesWhereTheCachesAreSaved) {
  page p;
  const page source;
  for (const persistence_domain domain : {persistence_domain::eadr, persistence_domain::gpf}) {
    counted<counted<dram>> m(domain);
    EXPECT_EQ(m.persistence(), domain);
    EXPECT_EQ(m.inner().persistence(), persistence_domain::adr);
    m.flush(p.at(0), 256);
    m.copy(p.at(512), source.at(0), 64);
    m.fence();
    EXPECT_EQ(m.total(), (counts{.lines_copied = 1, .device_lines_written = 1, .fences = 1}));
    EXPECT_EQ(m.inner().total().lines_flushed, 4U) << "what is inside decides for itself";
  }
  counted<dram> m(persistence_domain::gpf_may_fail);
  m.flush(p.at(0), 256);
  EXPECT_EQ(m.total().lines_flushed, 4U);
  EXPECT_EQ(persistence_of(m), persistence_domain::gpf_may_fail);
  EXPECT_EQ(persistence_of(m.inner()), persistence_domain::adr);
}

TEST(Counted, CountsCommittedPublicationsOnly) {
  counted<dram> m;
  {
    counted<dram>::publication dropped(m);
    ASSERT_NE(dropped.allocate(64, 64), nullptr);
  }
  counted<dram>::publication kept(m);
  void* const block = kept.allocate(64, 64);
  ASSERT_NE(block, nullptr);
  kept.commit();
  EXPECT_EQ(m.total(), counts{.publications = 1});
  EXPECT_EQ(m.used().allocated_bytes, 64U);
  counted<dram>::publication release(m);
  release.release(block, 64);
  release.commit();
  EXPECT_EQ(m.total(), counts{.publications = 2});
}

TEST(Counted, KnowsManyLinesOfOneOperation) {
  counted<dram> m;
  const std::vector<page> pages(100);
  m.begin_operation();
  for (int twice = 0; twice < 2; ++twice)
    for (const page& p : pages) m.annotate_read(p.at(0), sizeof p);
  EXPECT_EQ(m.total(), (counts{.operations = 1, .lines_read = 6400, .device_lines_read = 1600}));
}

TEST(Counted, SumsOverThreadsThatEnded) {
  counted<dram> m;
  const page p;
  constexpr int rounds = 3;
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t operations = 1000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> running;
    for (std::uint64_t t = 0; t < threads; ++t)
      running.emplace_back([&] {
        for (std::uint64_t i = 0; i < operations; ++i) {
          m.begin_operation();
          m.annotate_read(p.at(0), 512);  // all threads the same lines: each counts its own
          m.flush(p.at(0), 64);
          m.fence();
        }
      });
    for (std::thread& t : running) t.join();
  }
  constexpr std::uint64_t all = rounds * threads * operations;
  EXPECT_EQ(m.total(), (counts{.operations = all,
                               .lines_read = 8 * all,
                               .device_lines_read = 2 * all,
                               .lines_flushed = all,
                               .device_lines_written = all,
                               .fences = all}));
}

TEST(Counted, ResetStartsFromZeroWhileThreadsKeepCounting) {
  counted<dram> m;
  m.fence();
  m.fence();
  m.reset();
  EXPECT_EQ(m.total(), counts{});
  m.fence();
  EXPECT_EQ(m.total(), counts{.fences = 1});
}

TEST(Counted, MediaOfOneThreadDoNotMix) {
  counted<dram> a;
  counted<dram> b;
  a.fence();
  b.fence();
  a.fence();
  EXPECT_EQ(a.total().fences, 2U);
  EXPECT_EQ(b.total().fences, 1U);
}

TEST(Counted, OuterAndInnerCountTheSame) {
  counted<counted<dram>> m;
  const page p;
  m.begin_operation();
  m.annotate_read(p.at(0), 300);
  m.flush(p.at(0), 300);
  m.fence();
  EXPECT_EQ(m.total(), m.inner().total());
  EXPECT_EQ(m.total().lines_read, 5U);
}

TEST(ThreadBlocks, AreUsedAgainAndNeverMoreThanThreadsAtOneTime) {
  thread_blocks<int> blocks;
  const auto make = [](std::size_t) { return std::make_unique<int>(0); };
  for (int i = 0; i < 50; ++i) std::thread([&] { ++blocks.local(make); }).join();
  EXPECT_EQ(blocks.most_threads(), 1U);
  int sum = 0;
  blocks.for_each([&sum](int b) { sum += b; });
  EXPECT_EQ(sum, 50);
}

TEST(ThreadBlocks, OutliveTheirOwnerInNoThread) {
  const auto make = [](std::size_t) { return std::make_unique<int>(0); };
  for (int i = 0; i < 1000; ++i) {
    thread_blocks<int> blocks;
    EXPECT_EQ(++blocks.local(make), 1);
  }
}

}  // namespace
}  // namespace pmlab::media
