// Reading traces: real ones (tests/data), every form of a line, and every way in which a file can be bad.
#include "support/compressed.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include "bench/workload/keys.hpp"
#include "bench/workload/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace pmlab::workload;
using pmlab::tests::gzip_of;
using pmlab::tests::message_of;
using pmlab::tests::temporary_folder;
using enum operation_kind;

std::string data(const std::string& name) { return PMLAB_TEST_DATA "/" + name; }

std::uint64_t count_of(const std::vector<operation>& operations, operation_kind kind) {
  return static_cast<std::uint64_t>(
      std::count_if(operations.begin(), operations.end(), [&](const operation& o) { return o.kind == kind; }));
}

class trace_files : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    std::string path = folder_.file(name);
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    EXPECT_TRUE(file.good());
    return path;
  }

  trace read_text(std::string_view text) { return read_trace(write("trace.txt", text)); }

  std::string message(std::string_view text) {
    return message_of([&] { (void)read_text(text); });
  }

  temporary_folder folder_;
};

TEST(official_traces, workload_a_of_ycsb_in_two_files) {
  const std::vector<std::string> paths = {data("ycsb-a.load.txt"), data("ycsb-a.run.txt")};
  const trace both = read_trace(paths);
  EXPECT_EQ(both.source, paths[0] + ", " + paths[1]);
  EXPECT_EQ(both.load.size(), 200U);
  EXPECT_EQ(count_of(both.load, insert), 200U);
  EXPECT_EQ(both.load.front().key, 6284781860667377211U);
  EXPECT_EQ(both.run.size(), 300U);
  EXPECT_EQ(count_of(both.run, read), 158U);
  EXPECT_EQ(count_of(both.run, update), 142U);

  std::unordered_set<std::uint64_t> loaded;
  for (const operation& made : both.load) {
    EXPECT_TRUE(loaded.insert(made.key).second);
    EXPECT_EQ(made.value, value_of(made.key, 0));
  }
  for (std::size_t i = 0; i < both.run.size(); ++i) {
    EXPECT_TRUE(loaded.contains(both.run[i].key));
    EXPECT_EQ(both.run[i].value, both.run[i].kind == update ? value_of(both.run[i].key, i + 1) : 0);
  }
}

TEST(official_traces, workload_e_of_ycsb_in_one_file) {
  const trace both = read_trace(data("ycsb-e.txt"));
  EXPECT_EQ(both.load.size(), 200U);
  EXPECT_EQ(both.run.size(), 300U);
  EXPECT_EQ(count_of(both.run, scan), 286U);
  EXPECT_EQ(count_of(both.run, insert), 14U);
  std::uint64_t entries = 0;
  for (const operation& made : both.run) {
    EXPECT_LE(made.length, 100U);
    entries += made.length;
  }
  EXPECT_EQ(entries, 13755U);
}

TEST(official_traces, workload_f_of_ycsb_in_a_gzip_file_of_two_members) {
  const trace both = read_trace(data("ycsb-f.txt.gz"));
  EXPECT_EQ(both.load.size(), 200U);
  EXPECT_EQ(count_of(both.run, read), 300U);
  EXPECT_EQ(count_of(both.run, update), 136U);
  for (std::size_t i = 0; i < both.run.size(); ++i)
    if (both.run[i].kind == update) {
      ASSERT_EQ(both.run.at(i - 1).kind, read) << "a read-modify-write reads first";
      EXPECT_EQ(both.run.at(i - 1).key, both.run[i].key);
    }
}

TEST(official_traces, workload_a_of_go_ycsb) {
  const trace both = read_trace(data("go-ycsb-a.txt"));
  EXPECT_EQ(both.load.size(), 200U);
  EXPECT_EQ(both.load.front().key, 6284781860667377211U);
  EXPECT_EQ(both.run.size(), 300U);
  EXPECT_EQ(count_of(both.run, read), 145U);
  EXPECT_EQ(count_of(both.run, update), 155U);
}

TEST_F(trace_files, every_form_of_an_operation) {
  const trace all = read_text(
      "READ usertable user3232700585171816769 [ <all fields>]\n"
      "SCAN usertable user6873002678636213555 746 [ <all fields>]\n"
      "INSERT usertable user0 [ field0=x ]\n"
      "UPDATE usertable user18446744073709551615 [ field0=y ]\n"
      "DELETE usertable user412164360235391016\n"
      "DELETE usertable user5 \n"
      "READ usertable user42 [ field0 ]\n"
      "SCAN usertable user1 4294967295 [\n");
  ASSERT_EQ(all.run.size(), 8U);
  EXPECT_EQ(all.load.size(), 0U);
  EXPECT_EQ(all.run[0].kind, read);
  EXPECT_EQ(all.run[0].key, 3232700585171816769U);
  EXPECT_EQ(all.run[1].kind, scan);
  EXPECT_EQ(all.run[1].length, 746U);
  EXPECT_EQ(all.run[2].kind, insert);
  EXPECT_EQ(all.run[2].key, 0U);
  EXPECT_EQ(all.run[2].value, value_of(0, 3));
  EXPECT_EQ(all.run[3].kind, update);
  EXPECT_EQ(all.run[3].key, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(all.run[4].kind, erase);
  EXPECT_EQ(all.run[4].key, 412164360235391016U);
  EXPECT_EQ(all.run[5].key, 5U);
  EXPECT_EQ(all.run[6].key, 42U);
  EXPECT_EQ(all.run[7].length, std::numeric_limits<std::uint32_t>::max());
}

TEST_F(trace_files, values_may_hold_anything_and_other_lines_are_counted) {
  const trace all = read_text(
      "***************** properties *****************\n"
      "\"table\"=\"READ usertable user1 [ <all fields>]\"\n"
      "**********************************************\n"
      "INSERT usertable user1 [ field0=] READ usertable user9 [ field1=UPDATE t user8 [ **** ]\n"
      "\n"
      " READ usertable user2 [ <all fields>]\n"
      "READING usertable user3\n"
      "READ\n"
      "read usertable user4 [ <all fields>]\n"
      "[READ], Operations, 10\n"
      "READ   - Takes(s): 10.0, Count: 9, OPS: 101588.2\n"
      "INSERT - Takes(s): 10.0, Count: 9, OPS: 101588.2\n"
      "READ_MODIFY_WRITE - Takes(s): 0.0, Count: 4\n"
      "UPDATE usertable user5 [ field0=\xff\x01\t ]\n");
  ASSERT_EQ(all.load.size(), 1U);
  EXPECT_EQ(all.load[0].key, 1U);
  ASSERT_EQ(all.run.size(), 1U);
  EXPECT_EQ(all.run[0].key, 5U);
  ASSERT_FALSE(all.notes.empty());
  EXPECT_NE(all.notes[0].find("12 of 14 lines of trace"), std::string::npos) << all.notes[0];
  EXPECT_NE(all.notes[0].find("the first is line 1: '****"), std::string::npos) << all.notes[0];
}

TEST_F(trace_files, table_and_prefix_of_keys_are_any_but_the_same_in_all) {
  const struct {
    const char* text;
    std::uint64_t key;
  } taken[] = {{"INSERT usertable key000000000012 [ f ]\n", 12},
               {"INSERT t1 12 [ f ]\n", 12},
               {"INSERT t user2-7 [ f ]\nREAD t user2-7 [ ]\n", 7},
               {"READ 5 k_9 [ ]\nREAD 5 k_9 [ ]\n", 9}};
  for (const auto& t : taken) {
    const trace all = read_text(t.text);
    EXPECT_EQ((all.load.empty() ? all.run : all.load).front().key, t.key) << t.text;
  }
  const struct {
    const char* text;
    const char* part;
  } refused[] = {{"READ t user1 [ ]\nREAD t key1 [ ]\n",
                  ":2: malformed line 'READ t key1 [ ]': expected a key of the form "
                  "user<number>"},
                 {"READ t key1 [ ]\nREAD t 1 [ ]\n", "key<number>"},
                 {"READ t user1 [ ]\nREAD other user1 [ ]\n", ":2: "},
                 {"READ t user1 [ ]\nREAD other user1 [ ]\n", "several tables"},
                 {"READ t name [ ]\n", "a key that ends in a number"}};
  for (const auto& r : refused) EXPECT_NE(message(r.text).find(r.part), std::string::npos) << message(r.text);
}

TEST_F(trace_files, operations_in_the_midst_of_a_block_of_properties_count) {
  const trace all = read_text(
      "***************** properties *****************\n"
      "\"dotransactions\"=\"true\"\n"
      "INSERT usertable user1 [ field0=x ]\n"
      "**********************************************\n"
      "READ usertable user2 [ <all fields>]\n");
  EXPECT_EQ(all.run.size(), 2U);
}

TEST_F(trace_files, lines_may_end_in_carriage_return_and_line_feed) {
  const trace all = read_text(
      "\"dotransactions\"=\"false\"\r\nINSERT usertable user1 [ field0=x ]\r\n\"dotransactions\"=\"true\"\r\n"
      "INSERT usertable user2 [ field0=x ]\r\nDELETE usertable user3\r\nSCAN usertable user4 7 [ <all fields>]\r\n");
  EXPECT_EQ(all.load.size(), 1U);
  ASSERT_EQ(all.run.size(), 3U);
  EXPECT_EQ(all.run[1].key, 3U);
  EXPECT_EQ(all.run[2].length, 7U);
}

TEST_F(trace_files, the_last_line_may_lack_its_end_where_nothing_can_be_missing) {
  EXPECT_EQ(read_text("READ usertable user12 [ <all").run.size(), 1U);
  EXPECT_NE(message("READ usertable user12").find("trace.txt:1:"), std::string::npos);
  EXPECT_NE(message("DELETE usertable user12"), "");
  EXPECT_NE(message("SCAN usertable user12 74"), "");
}

TEST_F(trace_files, lines_of_any_length_pass_across_buffers) {
  // Values of all lengths around the sizes of buffers, and each operation where the next buffer may begin.
  std::string text = "\"dotransactions\"=\"true\"\n";
  std::vector<std::uint64_t> keys;
  for (const std::size_t length :
       {0UL, 1UL, 50UL, 65'536UL, 262'100UL, 262'143UL, 262'144UL, 262'145UL, 1'000'000UL, 5'000'000UL}) {
    for (std::uint64_t shift = 0; shift < 40; shift += 13) {
      keys.push_back(1000 * length + shift);
      text += "UPDATE usertable user" + std::to_string(keys.back()) + " [ field0=" + std::string(length + shift, 'R') +
              " ]\n";
      keys.push_back(keys.back() + 1);
      text += "READ usertable user" + std::to_string(keys.back()) + " [ <all fields>]\n";
    }
  }
  for (const bool zipped : {false, true}) {
    const trace all = read_trace(write("long", zipped ? gzip_of(text) : text));
    ASSERT_EQ(all.run.size(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(all.run[i].key, keys[i]) << i;
  }
  text += "READ usertable nobody [ ]\n";
  const std::string error = message(text);
  EXPECT_NE(error.find(":" + std::to_string(keys.size() + 2) + ":"), std::string::npos) << error;
}

// Every line boundary falls on every place of a buffer sooner or later: lines of 61 bytes, 256 KiB buffers.
TEST_F(trace_files, many_lines_come_out_as_they_went_in) {
  std::string text;
  constexpr std::uint64_t lines = 200'000;
  for (std::uint64_t i = 0; i < lines; ++i)
    text += "READ usertable user" + std::to_string(key_of(i)) + " [ <all fields>]\n";
  for (const bool zipped : {false, true}) {
    const trace all = read_trace(write("many", zipped ? gzip_of(text) : text));
    ASSERT_EQ(all.run.size(), lines);
    for (std::uint64_t i = 0; i < lines; ++i) ASSERT_EQ(all.run[i].key, key_of(i));
  }
}

TEST_F(trace_files, malformed_operations_name_file_line_and_expectation) {
  const auto expect = [&](const std::string& line, const std::string& expected) {
    const std::string said = message("status\nREAD usertable user1 [ ]\n" + line + "\nREAD usertable user1 [ ]\n");
    EXPECT_NE(said.find(folder_.file("trace.txt") + ":3:"), std::string::npos) << line << ": " << said;
    EXPECT_NE(said.find(expected), std::string::npos) << line << ": " << said;
  };
  expect("READ ", "table");
  expect("READ  usertable user1 [", "table");
  expect("READ usertable", "key");
  expect("READ usertable ", "user<number>");
  expect("READ usertable  user1 [", "user<number>");
  expect("READ usertable customer1 [", "user<number>");
  expect("READ usertable user [", "user<number>");
  expect("READ usertable user-1 [", "user<number>");
  expect("READ usertable user18446744073709551616 [", "18446744073709551615");
  expect("READ usertable user99999999999999999999999 [", "18446744073709551615");
  expect("INSERT usertable user12a [ field0=x ]", "digits");
  expect("UPDATE usertable user12", "space");
  expect("DELETE usertable user12]", "digits");
  expect("SCAN usertable user12 [ <all fields>]", "length");
  expect("SCAN usertable user12 0 [ <all fields>]", "length");
  expect("SCAN usertable user12 -1 [ <all fields>]", "length");
  expect("SCAN usertable user12 4294967296 [ <all fields>]", "length");
  expect("SCAN usertable user12 74", "length");
  expect("INSERT usertable customer\x01\x02" + std::string(1000, 'x'), "customer??xxx");
}

TEST_F(trace_files, keys_that_differ_in_leading_zeros_alone_are_refused) {
  const auto reads_of = [](const std::vector<std::string>& keys) {
    std::string text;
    for (const std::string& key : keys) text += "READ usertable user" + key + " [ ]\n";
    return text;
  };
  const trace padded = read_text(reads_of({"00000000000000000000000042", "00000000000000000000000007"}));
  ASSERT_EQ(padded.run.size(), 2U);
  EXPECT_EQ(padded.run[0].key, 42U);
  EXPECT_EQ(padded.run[1].key, 7U);
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"01", "10", "100", "02"}, {"10", "01"}, {"0", "1", "10"}, {"00", "01"}})
    EXPECT_EQ(read_text(reads_of(keys)).run.size(), keys.size()) << keys.front();
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"01", "1"}, {"1", "01"}, {"001", "01"}, {"01", "001"}, {"10", "001"}, {"0", "00"}}) {
    const std::string said = message(reads_of(keys));
    EXPECT_NE(said.find(":2: malformed line"), std::string::npos) << said;
    EXPECT_NE(said.find("padded with zeros"), std::string::npos) << said;
  }
}

TEST_F(trace_files, files_without_properties_begin_with_the_load) {
  const trace all = read_text(
      "INSERT usertable user1 [ ]\nINSERT usertable user2 [ ]\nREAD usertable user1 [ ]\nINSERT usertable user3 [ ]\n");
  EXPECT_EQ(all.load.size(), 2U);
  EXPECT_EQ(all.run.size(), 2U);
}

TEST_F(trace_files, properties_say_what_is_load_and_what_is_run) {
  const std::string run = "\"dotransactions\"=\"true\"\nINSERT usertable user3 [ ]\nREAD usertable user1 [ ]\n";
  const std::string load = "\"dotransactions\"=\"false\"\nINSERT usertable user1 [ ]\nINSERT usertable user2 [ ]\n";
  EXPECT_EQ(read_text(run).run.size(), 2U);
  for (const std::string& text : {load + run, run + load}) {
    EXPECT_EQ(read_text(text).load.size(), 2U);
    EXPECT_EQ(read_text(text).run.size(), 2U);
  }
}

TEST_F(trace_files, further_files_of_inserts_alone_are_load_until_something_runs) {
  const std::string inserts = write("inserts", "INSERT usertable user1 [ ]\nINSERT usertable user2 [ ]\n");
  const std::string more = write("more", "INSERT usertable user3 [ ]\n");
  const std::string run = write("run", "INSERT usertable user4 [ ]\nREAD usertable user1 [ ]\n");
  const auto sizes = [](const std::vector<std::string>& paths) {
    const trace all = read_trace(paths);
    for (const operation& made : all.load) EXPECT_EQ(made.value, value_of(made.key, 0));
    return std::pair(all.load.size(), all.run.size());
  };
  EXPECT_EQ(sizes({inserts, more}), std::pair(3UL, 0UL));
  EXPECT_EQ(sizes({inserts, more, run}), std::pair(3UL, 2UL));
  EXPECT_EQ(sizes({inserts, run, more}), std::pair(2UL, 3UL));
}

TEST_F(trace_files, bad_files_give_one_clear_error_each) {
  const auto said = [](const std::string& path) { return message_of([&] { (void)read_trace(path); }); };
  const auto expect = [&](const std::string& path, const std::string& expected) {
    EXPECT_NE(said(path).find(expected), std::string::npos) << said(path);
    EXPECT_NE(said(path).find(path), std::string::npos) << said(path);
  };
  expect(folder_.file("missing"), "No such file");
  expect(folder_.file(""), "directory");
  expect(write("empty", ""), "empty");
  expect(write("empty.gz", gzip_of("")), "empty");
  expect(write("status", "YCSB Client 0.17.0\nStarting test.\n"), "no operation");
  expect(write("binary", std::string(1'000'000, '\0')), ":1: the line has a zero byte");

  std::string text;
  for (std::uint64_t i = 0; i < 50'000; ++i) text += "READ usertable user" + std::to_string(key_of(i)) + " [ ]\n";
  const std::string zipped = gzip_of(text);
  ASSERT_EQ(read_trace(write("whole.gz", zipped)).run.size(), 50'000U);
  for (const std::size_t kept :
       {zipped.size() - 1, zipped.size() - 8, zipped.size() / 2, std::size_t{100}, std::size_t{10}, std::size_t{3}})
    expect(write("cut.gz", zipped.substr(0, kept)), "truncated");
  std::string damaged = zipped;
  for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 100; ++i)
    damaged[i] = static_cast<char>(~damaged[i]);
  expect(write("damaged.gz", damaged), "damaged");

  if (::geteuid() != 0) {  // root reads everything
    const std::string path = write("secret", "READ usertable user1 [ ]\n");
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    expect(path, "Permission denied");
  }
}

}  // namespace
