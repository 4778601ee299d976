// What the command line's words mean.
#include <pmlab/base/error.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/catalogue/operation_loop.hpp"
#include "bench/engine/phase.hpp"
#include "bench/support/quantity.hpp"

#include <string>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using namespace bench;

// The message of the error; empty: there was none.
template <class Call>
std::string complaint(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(quantity, counts) {
  EXPECT_EQ(parse_count("10M", "--records"), 10'000'000U);
  EXPECT_EQ(parse_count("1k", "--records"), 1'000U);
  EXPECT_EQ(parse_count("2e6", "--records"), 2'000'000U);
  EXPECT_EQ(parse_count("1.5k", "--records"), 1'500U);
  EXPECT_EQ(parse_count("3G", "--records"), 3'000'000'000U);
  EXPECT_EQ(parse_count("0", "--seed", 0), 0U);
}

TEST(quantity, rejects_what_is_no_count) {
  for (const char* const text : {"", "ten", "-5", "0", "1.5", "10X", "10MM", "1e30", "nan", "inf", "0x10", "5 k"})
    EXPECT_NE(complaint([&] { static_cast<void>(parse_count(text, "--records")); }).find("--records"),
              std::string::npos)
        << text;
}

TEST(quantity, every_digit_counts) {
  // Not a double: the next one is even.
  EXPECT_EQ(parse_count("9007199254740993", "--seed"), 9'007'199'254'740'993U);
  EXPECT_EQ(parse_bytes("9007199254740993", "--pool-size"), 9'007'199'254'740'993U);
}

TEST(quantity, names_a_number_that_is_out_of_range) {
  const auto said = [](const char* text) {
    return complaint([&] { static_cast<void>(parse_count(text, "--seed", 0)); });
  };
  EXPECT_NE(said("1e400").find("'1e400' is too large"), std::string::npos) << said("1e400");
  EXPECT_NE(said("1e-400").find("'1e-400' is too small"), std::string::npos) << said("1e-400");
  EXPECT_NE(said("18446744073709551615").find("is too large"), std::string::npos);
}

TEST(quantity, bytes_and_seconds) {
  EXPECT_EQ(parse_bytes("64M", "--pool-size"), std::uint64_t{64} << 20);
  EXPECT_EQ(parse_bytes("2GiB", "--pool-size"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("4096", "--pool-size"), 4096U);
  EXPECT_THROW(static_cast<void>(parse_bytes("-1G", "--pool-size")), error);
  EXPECT_DOUBLE_EQ(parse_seconds("0.5", "--seconds"), 0.5);
  EXPECT_THROW(static_cast<void>(parse_seconds("0", "--seconds")), error);
  EXPECT_THROW(static_cast<void>(parse_seconds("1e10", "--seconds")), error);
  EXPECT_EQ(parse_seconds_or_none("0", "--shrink"), 0);
  EXPECT_EQ(parse_emulation_scale("10000"), 10'000);
  EXPECT_THROW(static_cast<void>(parse_emulation_scale("10001")), error);
  EXPECT_THROW(static_cast<void>(parse_seconds("5m", "--seconds")), error);
}

TEST(quantity, texts) {
  EXPECT_EQ(short_count(10'000'000), "10M");
  EXPECT_EQ(short_count(1'234), "1234");
  EXPECT_EQ(short_count(0), "0");
  EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
}

TEST(medium_spec, reads_back_what_it_writes) {
  for (const char* const text : {"dram", "pmem:/dev/shm/p", "emulated:aep", "emulated:cxl@/dev/shm/p", "counted:dram",
                                 "counted:pmem:/p", "counted:emulated:aep@/p", "simulated:aep"})
    EXPECT_EQ(parse_medium(text).text(), text);
}

TEST(medium_spec, says_what_is_wrong_and_what_to_write) {
  const auto said = [](const char* text) { return complaint([&] { static_cast<void>(parse_medium(text)); }); };
  EXPECT_NE(said("drum").find("did you mean dram"), std::string::npos) << said("drum");
  EXPECT_NE(said("emulated:aepp").find("aep"), std::string::npos) << said("emulated:aepp");
  EXPECT_NE(said("pmem").find("pmem:PATH"), std::string::npos);
  EXPECT_NE(said("pmem:").find("pmem:PATH"), std::string::npos);
  EXPECT_NE(said("emulated").find("PROFILE"), std::string::npos);
  EXPECT_NE(said("emulated:aep@").find("PATH"), std::string::npos);
  EXPECT_NE(said("simulated").find("PROFILE"), std::string::npos);
  EXPECT_NE(said("simulated:aepp").find("did you mean 'aep'"), std::string::npos) << said("simulated:aepp");
  EXPECT_NE(said("simulated:aep@/p").find("no file"), std::string::npos);
  EXPECT_NE(said("counted:simulated:aep").find("counted:emulated:aep"), std::string::npos);
  EXPECT_NE(said("dram:/p").find("no path"), std::string::npos);
  EXPECT_NE(said("counted:counted:dram").find("twice"), std::string::npos);
  EXPECT_FALSE(said("counted:").empty());
  EXPECT_FALSE(said("").empty());
}

TEST(phases, names) {
  EXPECT_EQ(parse_phases("load,read").size(), 2U);
  const std::string said = complaint([] { static_cast<void>(parse_phases("read,inserts")); });
  EXPECT_NE(said.find("did you mean insert"), std::string::npos) << said;
  std::vector<phase> twice = parse_phases("read,reopen,read");
  make_names_unique(twice);
  EXPECT_EQ(twice[0].name, "read");
  EXPECT_EQ(twice[2].name, "read-2");
}

// Answers every read of a batch, and counts the batches.
struct batches {
  std::size_t calls = 0;
  std::optional<indexes::value_type> find(indexes::key_type key) { return key + 1; }
  indexes::outcome insert(indexes::key_type, indexes::value_type) { return indexes::outcome::inserted; }
  indexes::outcome update(indexes::key_type, indexes::value_type) { return indexes::outcome::updated; }
  void find_batch(std::span<const indexes::key_type> keys, std::span<std::optional<indexes::value_type>> values) {
    ++calls;
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = keys[i] + 1;
  }
};

TEST(operation_loop, batches_reads_that_follow_each_other) {
  std::vector<workload::operation> operations(40);
  for (std::size_t i = 0; i < operations.size(); ++i) operations[i].key = i;
  operations[20].kind = workload::operation_kind::update;
  std::vector<answer> answers(operations.size());
  batches target;
  const work_done done = execute(target, work{.operations = operations, .answers = answers, .batch = 16}, no_hooks{});
  EXPECT_EQ(target.calls, 4U) << "16 + 4, then 16 + 3";
  EXPECT_EQ(done.executed, 40U);
  EXPECT_EQ(done.positive, 40U);
  for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i].value, i == 20 ? 0 : i + 1);
  EXPECT_EQ(answers[20].result, indexes::outcome::updated);
}

}  // namespace
}  // namespace pmlab::tests
