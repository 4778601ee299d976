// Specifications: how things made of other things are written, and a cache's options.
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/cache/options.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/message_of.hpp"

namespace pmlab::tests::options_test {
namespace {

TEST(spec, a_name_alone_is_a_specification) {
  const spec s = parse_spec("cceh");
  EXPECT_EQ(s.name, "cceh");
  EXPECT_TRUE(s.arguments.empty());
  EXPECT_TRUE(s.options.empty());
}

TEST(spec, arguments_and_options_may_be_specifications) {
  const spec s = parse_spec(" hybrid( hash=cache(cceh,mode=serial)@pmem , cache(a,b=c), update = async )");
  EXPECT_EQ(s.name, "hybrid");
  EXPECT_EQ(s.arguments, std::vector<std::string>{"cache(a,b=c)"});
  EXPECT_EQ(s.option("hash"), "cache(cceh,mode=serial)@pmem");
  EXPECT_EQ(s.option("update"), "async");
  EXPECT_EQ(s.option("tree"), std::nullopt);
}

TEST(spec, lists_are_split_outside_of_brackets) {
  EXPECT_EQ(split_list("a,b(c,d(e,f)),g"), (std::vector<std::string>{"a", "b(c,d(e,f))", "g"}));
  EXPECT_EQ(split_list(""), std::vector<std::string>{""});
}

TEST(spec, what_cannot_be_understood_is_said) {
  for (const char* const wrong :
       {"", "(a)", "x(", "x(a", "x(a))", "x)(", "x(a)b", "x(a,,b)", "x()", "x(k=)", "x(=v)", "x(k=1,k=2)"})
    EXPECT_NE(message_of([&] { static_cast<void>(parse_spec(wrong)); }), "") << wrong;
}

cache::options options_of(const std::string& text) { return cache::parse_options(parse_spec(text)); }

TEST(options, what_is_not_given_is_ten_percent_serial_and_s3_fifo) {
  const cache::options o = options_of("cache(cceh)");
  EXPECT_EQ(o.lookup, cache::mode::serial);
  EXPECT_EQ(o.evict, cache::eviction::s3_fifo);
  EXPECT_EQ(o.size.in_entries(1000), 100U);
  EXPECT_EQ(o.fill_by, cache::filling::background);
  EXPECT_EQ(o.fillers, 1U);
}

TEST(options, callers_that_fill_need_no_fillers) {
  const cache::options o = options_of("cache(cceh,fills=caller)");
  EXPECT_EQ(o.fill_by, cache::filling::caller);
  EXPECT_EQ(o.fillers, 0U);
}

TEST(options, everything_can_be_given) {
  const cache::options o =
      options_of("cache(cceh,mode=parallel,capacity=64KiB,eviction=s3_fifo,fillers=2,queue=1k,rest_us=0,helpers=3)");
  EXPECT_EQ(o.lookup, cache::mode::parallel);
  EXPECT_EQ(o.size.in_entries(0), 65'536U / 128 * 7);
  EXPECT_EQ(o.evict, cache::eviction::s3_fifo);
  EXPECT_EQ(o.fillers, 2U);
  EXPECT_EQ(o.queue, 1000U);
  EXPECT_EQ(o.rest.count(), 0);
  EXPECT_EQ(o.helpers, 3U);
  EXPECT_EQ(options_of("cache(cceh,capacity=20k)").size.in_entries(5), 20'000U);
}

TEST(options, a_capacity_is_a_number_of_entries_whatever_its_amount) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  EXPECT_EQ(cache::capacity::entries(all).in_entries(0), most);
  EXPECT_LE(cache::capacity::bytes(all).in_entries(0), most);
  EXPECT_GT(cache::capacity::bytes(all).in_entries(0), most / 2);
  EXPECT_EQ(cache::capacity::share(1e30).in_entries(all), most);
  EXPECT_EQ(cache::capacity::share(0).in_entries(all), 0U);
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()})
    for (const cache::capacity::unit in :
         {cache::capacity::unit::entries, cache::capacity::unit::bytes, cache::capacity::unit::share})
      EXPECT_NE(message_of([&] {
                  static_cast<void>(cache::capacity{in, wrong}.in_entries(100));
                }).find("capacity"),
                std::string::npos);
}

TEST(options, mistakes_name_what_is_meant) {
  const auto said = [](const std::string& text) { return message_of([&] { static_cast<void>(options_of(text)); }); };
  EXPECT_NE(said("cache(cceh,modus=serial)").find("mode"), std::string::npos);
  EXPECT_NE(said("cache(cceh,mode=seriel)").find("serial"), std::string::npos);
  EXPECT_NE(said("cache(cceh,fills=callers)").find("caller"), std::string::npos);
  EXPECT_NE(said("cache(cceh,eviction=lfu)").find("eviction"), std::string::npos);
  for (const char* const wrong :
       {"cache", "cache(a,b)", "cache(a,capacity=0%)", "cache(a,capacity=120%)", "cache(a,capacity=x)",
        "cache(a,capacity=0)", "cache(a,fillers=1000)", "cache(a,fills=caller,fillers=2)"})
    EXPECT_NE(said(wrong), "") << wrong;
}

}  // namespace
}  // namespace pmlab::tests::options_test
