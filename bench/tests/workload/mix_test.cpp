#include "support/message_of.hpp"

#include "bench/workload/mix.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace {

using namespace pmlab::workload;
using pmlab::tests::message_of;
using enum operation_kind;

TEST(mix, core_workloads_are_those_of_ycsb) {
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-a")[read], 0.5);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-a")[update], 0.5);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-b")[read], 0.95);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-b")[update], 0.05);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-c")[read], 1);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-d")[read], 0.95);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-d")[insert], 0.05);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-e")[scan], 0.95);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-e")[insert], 0.05);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-f")[read], 0.5);
  EXPECT_DOUBLE_EQ(parse_mix("ycsb-f")[read_modify_write], 0.5);
  EXPECT_EQ(mix_names().size(), 6U);
  for (const std::string_view name : mix_names()) {
    const mix core = parse_mix(name);
    EXPECT_EQ(core.name, name);
    EXPECT_DOUBLE_EQ(std::accumulate(core.share.begin(), core.share.end(), 0.0), 1) << name;
    EXPECT_EQ(core.usual_keys.name(), name == "ycsb-d" ? "latest:0.99" : "zipfian:0.99");
  }
}

TEST(mix, shares_are_read) {
  const mix given = parse_mix("read=.5,insert=.1,update=0.1,erase=1e-1,scan=.1,read-modify-write=.1");
  EXPECT_DOUBLE_EQ(given[read], 0.5);
  for (const operation_kind kind : {insert, update, erase, scan, read_modify_write}) EXPECT_DOUBLE_EQ(given[kind], 0.1);
  EXPECT_EQ(given.usual_keys.name(), "uniform");
  EXPECT_DOUBLE_EQ(parse_mix("rmw=1")[read_modify_write], 1);
  EXPECT_DOUBLE_EQ(parse_mix("read=1,insert=0")[read], 1);
}

TEST(mix, shares_may_miss_one_by_a_millionth_and_are_scaled) {
  const mix thirds = parse_mix("read=.3333333,insert=.3333333,erase=.3333333");
  EXPECT_DOUBLE_EQ(thirds[read] + thirds[insert] + thirds[erase], 1);
  const std::string message = message_of([] { (void)parse_mix("read=.9,update=.2"); });
  EXPECT_NE(message.find("1.1"), std::string::npos) << message;
  EXPECT_NE(message_of([] { (void)parse_mix("read=.999,update=.00099"); }), "");
}

TEST(mix, bad_names_and_shares_are_refused) {
  const auto message = [](const char* text) { return message_of([&] { (void)parse_mix(text); }); };
  EXPECT_NE(message("ycsb-g").find("did you mean ycsb-a"), std::string::npos) << message("ycsb-g");
  EXPECT_NE(message("ycbs-f").find("did you mean ycsb-f"), std::string::npos) << message("ycbs-f");
  EXPECT_NE(message("raed=1").find("did you mean read"), std::string::npos) << message("raed=1");
  EXPECT_NE(message("read=.5,read=.5").find("twice"), std::string::npos);
  EXPECT_NE(message("rmw=.5,read-modify-write=.5").find("twice"), std::string::npos);
  for (const char* const bad : {"", "read", "=1", "read=", "read=x", "read=1.5", "read=-1,update=2", "read=1,",
                                ",read=1", "read=nan", "read=1 ", "read=0", "read=.5;update=.5"})
    EXPECT_NE(message(bad), "") << bad;
}

}  // namespace
