// The formats of traces other than YCSB's: found by content, every line used, refused or counted.
#include "support/compressed.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include "bench/workload/keys.hpp"
#include "bench/workload/trace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::workload {
namespace {

using tests::gzip_of;
using tests::message_of;
using tests::zstd_of;
using enum operation_kind;
using kinds = std::vector<operation_kind>;
using words = std::vector<std::uint64_t>;

template <class Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

template <class Number>
std::string sosd_of(const std::vector<Number>& keys, std::int64_t more = 0) {
  std::string bytes = bytes_of(static_cast<std::uint64_t>(static_cast<std::int64_t>(keys.size()) + more));
  for (const Number key : keys) bytes += bytes_of(key);
  return bytes;
}

// Requests at times 10, 11, ...
std::string oracle_of(const words& objects) {
  std::string bytes;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    std::int64_t next = -1;
    for (std::size_t later = i + 1; later < objects.size() && next < 0; ++later)
      if (objects[later] == objects[i]) next = static_cast<std::int64_t>(later + 1);
    bytes += bytes_of(static_cast<std::uint32_t>(10 + i)) + bytes_of(objects[i]) + bytes_of(std::uint32_t{100}) +
             bytes_of(next);
  }
  return bytes;
}

class trace_formats : public testing::Test {
 protected:
  std::string write(const std::string& content, const std::string& name = "trace") {
    std::string path = folder_.file(name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  trace read(const std::string& content, trace_options options = {}) { return read_trace(write(content), options); }
  std::string refusal(const std::string& content, trace_options options = {}) {
    return message_of([&] { (void)read(content, options); });
  }
  static kinds kinds_of(const std::vector<operation>& operations) {
    kinds all;
    for (const operation& o : operations) all.push_back(o.kind);
    return all;
  }
  static words keys_of(const std::vector<operation>& operations) {
    words all;
    for (const operation& o : operations) all.push_back(o.key);
    return all;
  }
  static bool has_note(const trace& all, const std::string& part) {
    for (const std::string& note : all.notes)
      if (note.find(part) != std::string::npos) return true;
    return false;
  }
  tests::temporary_folder folder_;
};

TEST_F(trace_formats, index_microbench) {
  const std::string text =
      "INSERT 6284781860667377211\nINSERT 8517097267634966620\nREAD 6284781860667377211\nSCAN 8517097267634966620 10\n"
      "UPDATE 0\nDELETE 18446744073709551615\n";
  for (const std::string& form : {text, gzip_of(text), text.substr(0, text.size() - 1)}) {
    const trace all = read(form);
    EXPECT_EQ(keys_of(all.load), (words{6284781860667377211U, 8517097267634966620U}));
    EXPECT_EQ(kinds_of(all.run), (kinds{operation_kind::read, scan, update, erase}));
    EXPECT_EQ(all.run[1].length, 10U);
    EXPECT_EQ(all.run[3].key, 18446744073709551615U);
    EXPECT_TRUE(has_note(all, "2 of 4 operations of the trace's run are of keys that are not there then"));
    EXPECT_FALSE(has_note(all, "were no operation"));
  }
  EXPECT_TRUE(has_note(read(text.substr(0, text.size() - 1)), "has no end"));
  EXPECT_EQ(keys_of(read("INSERT\t5\r\n  INSERT   6  \r\n").load), (words{5, 6}));
  EXPECT_TRUE(has_note(read("# made by hand\n\nINSERT 5\nstatus\n"), "3 of 4 lines of trace " + folder_.file("trace") +
                                                                         " were no operations; the first is line 1: "
                                                                         "'# made by hand'"));
}

TEST_F(trace_formats, index_microbench_in_two_files_is_load_and_run) {
  const std::vector<std::string> paths = {write("INSERT 1\nINSERT 2\n", "load"),
                                          write("READ 1\nINSERT 3\nREAD 3\n", "run")};
  const trace all = read_trace(paths);
  EXPECT_EQ(keys_of(all.load), (words{1, 2}));
  EXPECT_EQ(keys_of(all.run), (words{1, 3, 3}));
  EXPECT_EQ(all.notes.size(), 0U);
}

TEST_F(trace_formats, lines_of_index_microbench_that_are_refused) {
  const struct {
    const char* line;
    const char* expected;
  } cases[] = {{"READ 18446744073709551616", "18446744073709551615"},
               {"READ -5", "0 to 18446744073709551615"},
               {"READ 1.5", "0 to 18446744073709551615"},
               {"READ 0x10", "0 to 18446744073709551615"},
               {"READ 5 6", "line end"},
               {"SCAN 5", "length"},
               {"SCAN 5 0", "length"},
               {"SCAN 5 4294967296", "length"},
               {"SCAN 5 6 7", "line end"},
               {"INSERT usertable user1 [ field0=x ]", "0 to 18446744073709551615"}};
  for (const auto& c : cases) {
    const std::string said = refusal("INSERT 5\n" + std::string(c.line) + "\nREAD 5\n");
    EXPECT_NE(said.find(folder_.file("trace") + ":2: malformed line"), std::string::npos) << said;
    EXPECT_NE(said.find(c.expected), std::string::npos) << said;
  }
  EXPECT_NE(refusal("READ 5" + std::string(300'000, ' ') + "6\n").find("256 KiB"), std::string::npos);
}

TEST_F(trace_formats, twitter) {
  const std::string text =
      "0,k1,31,172,1,get,0\n0,k1,31,172,1,set,3600\n0,k1,31,172,1,SET,3600\n1,a,b,31,0,7,gets,0\n2,k1,31,0,7,delete,0\n"
      "2,k1,31,9,7,add,60\n3,k1,31,9,7,add,60\n4,k1,31,9,7,incr,0\n5,k1,31,9,7,cas,-1\n";
  const trace all = read(text);
  EXPECT_EQ(all.load.size(), 0U);
  EXPECT_EQ(kinds_of(all.run),
            (kinds{operation_kind::read, insert, update, operation_kind::read, erase, insert, insert, update, update}));
  EXPECT_EQ(all.run[0].key, all.run[1].key);
  EXPECT_NE(all.run[0].key, all.run[3].key) << "a key may have commas";
  EXPECT_EQ(all.run[1].value, value_of(all.run[1].key, 2));
  EXPECT_TRUE(has_note(all, "sizes, times and TTL are not replayed"));
  EXPECT_TRUE(has_note(all, "no keys were loaded"));
  EXPECT_TRUE(has_note(all, "2 of 9 operations of the trace's run are of keys that are not there then"));

  const words right = keys_of(all.run);
  const auto with = [&](char separator) {
    std::string other = text;
    for (char& c : other)
      if (c == ',') c = separator;
    return other;
  };
  EXPECT_EQ(keys_of(read(gzip_of(text)).run), right);
  EXPECT_EQ(keys_of(read("timestamp,anonymized key,key size,value size,client id,operation,TTL\n" + text).run), right);
  EXPECT_EQ(kinds_of(read(with('\t')).run), kinds_of(all.run));
  EXPECT_EQ(read("\"0\",\"a,b\",\"3\",\"0\",\"7\",\"get\",\"0\"\r\n").run[0].key, all.run[3].key)
      << "in quotation marks";
}

TEST_F(trace_formats, lines_of_twitter_that_are_refused) {
  for (const char* const line :
       {"1,k,31,172,1,fetch,0", "1,k,31,172,1,get", "x,k,31,172,1,get,0", "1,,31,172,1,get,0", "1,k,-31,172,1,get,0",
        "1,k,31,99999999999999999999,1,get,0", "1,k,31,172,1,get,soon", "READ 5", "text"}) {
    const std::string said = refusal("0,k,31,172,1,get,0\n\n" + std::string(line) + "\n");
    EXPECT_NE(said.find(folder_.file("trace") + ":3: malformed line"), std::string::npos) << line << ": " << said;
  }
}

TEST_F(trace_formats, kvcache) {
  const std::string rows = "10,GET,0,2,16\n11,SET,100,3,16\n11,DELETE,0,1,16\n11,GET_LEASE,0,1,16\n";
  const kinds right = {operation_kind::read, operation_kind::read, insert, update, update, erase, operation_kind::read};
  for (const std::string& text :
       {rows, "key,op,size,op_count,key_size\n" + rows,
        std::string("op_time,key,key_size,op,op_count,size,cache_hits,ttl\n1,10,16,GET,2,0,,\n"
                    "1,11,16,SET,3,100,,\n1,11,16,DELETE,1,0,,\n2,11,16,GET_LEASE,1,0,,\n")}) {
    const trace all = read(text);
    EXPECT_EQ(kinds_of(all.run), right) << text;
    EXPECT_EQ(all.run[2].key, all.run[5].key);
    EXPECT_NE(all.run[0].key, all.run[5].key);
    EXPECT_TRUE(has_note(all, "CacheLib"));
  }
  EXPECT_TRUE(has_note(read("key,op,size,op_count,key_size\n" + rows), "1 of 5 lines"));
  // A line that repeats its operation 0 times is none.
  EXPECT_TRUE(has_note(read(rows + "12,GET,0,0,16\n"), "1 of 5 lines"));
  const struct {
    const char* line;
    const char* expected;
  } refused[] = {{"12,GET,0,-1,16", "count"},
                 {"12,GET,0,,16", "count"},
                 {"12,FETCH,0,1,16", "get_lease"},
                 {"12,GET,0,1", "5 fields"},
                 {",GET,0,1,16", "key"}};
  for (const auto& r : refused) {
    const std::string said = refusal(rows + r.line + "\n");
    EXPECT_NE(said.find(":5: malformed line"), std::string::npos) << said;
    EXPECT_NE(said.find(r.expected), std::string::npos) << said;
  }
}

TEST_F(trace_formats, operations_behind_a_line_end_of_another_kind_are_not_lost) {
  using namespace std::string_literals;
  const std::string lines[] = {"READ usertable user1 [ ]\rREAD usertable user2 [ ]\n"s,
                               "0,a,1,1,1,get,0\r0,b,1,1,1,get,0\n"s};
  for (const std::string& line : lines) {
    const std::string first = line.substr(0, line.find('\r')) + "\n";
    const std::string said = refusal(first + line + first);
    EXPECT_NE(said.find(":2: malformed line"), std::string::npos) << said;
    EXPECT_NE(said.find("one kind of line ends"), std::string::npos) << said;
  }
  // Values may hold what ends no operation.
  EXPECT_EQ(refusal("READ usertable user1 [ f=a\rb ]\nREAD usertable user1 [ ]\n"), "");
}

TEST_F(trace_formats, operations_that_the_memory_does_not_hold_are_refused_before) {
  const std::string said = refusal("1,GET,0,1,16\n1,GET,0,1000000000000,16\n", {.most_operations = 1000});
  EXPECT_NE(said.find(":2: the trace has more than the 1,000 operations"), std::string::npos) << said;
  EXPECT_EQ(refusal("1,GET,0,1000,16\n", {.most_operations = 1000}), "");
}

TEST_F(trace_formats, oracle_general) {
  const std::string bytes = oracle_of({7, 8, 7, 9, 8, 7});
  for (const std::string& form : {bytes, zstd_of(bytes), gzip_of(bytes)}) {
    const trace all = read(form);
    EXPECT_EQ(keys_of(all.run), (words{7, 8, 7, 9, 8, 7}));
    EXPECT_EQ(kinds_of(all.run),
              (kinds{insert, insert, operation_kind::read, insert, operation_kind::read, operation_kind::read}));
    EXPECT_TRUE(has_note(all, "libCacheSim"));
  }
  const std::string said = refusal(bytes.substr(0, bytes.size() - 3), {.format = trace_format::oracle_general});
  EXPECT_NE(said.find("ends inside request 6"), std::string::npos) << said;
}

TEST_F(trace_formats, sosd) {
  const std::vector<std::uint64_t> large = {5, 1U << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}};
  const std::vector<std::uint32_t> small = {5, 6, 7, ~std::uint32_t{0}};
  for (const std::string& form : {sosd_of(large), gzip_of(sosd_of(large)), zstd_of(sosd_of(large))})
    EXPECT_EQ(keys_of(read(form).load), large);
  for (const std::string& form : {sosd_of(small), gzip_of(sosd_of(small))})
    EXPECT_EQ(keys_of(read(form).load), (words{5, 6, 7, ~std::uint32_t{0}}));

  const trace all = read(sosd_of(large));
  ASSERT_EQ(all.run.size(), 4U);
  for (const operation& o : all.run) {
    EXPECT_EQ(o.kind, operation_kind::read);
    EXPECT_NE(std::find(large.begin(), large.end(), o.key), large.end());
  }
  EXPECT_TRUE(has_note(all, "its run reads 4 of them, drawn by --seed"));

  const trace repeated = read(sosd_of(std::vector<std::uint64_t>{5, 5, 5, 6}));
  EXPECT_EQ(keys_of(repeated.load), (words{5, 6}));
  EXPECT_TRUE(has_note(repeated, "2 of 4 keys of the load occur in it before, and left out"));

  const std::vector<std::string> with_run = {write(sosd_of(large), "keys"), write("READ 5\n", "run")};
  EXPECT_EQ(keys_of(read_trace(with_run).run), (words{5}));
}

TEST_F(trace_formats, keys_of_sosd_that_are_refused) {
  const std::vector<std::uint64_t> keys = {5, 6, 7};
  const struct {
    std::string content;
    trace_format format;
    const char* expected;
  } cases[] = {{sosd_of(keys, 1), trace_format::sosd_uint64, "says that it has 4 keys, and has 3"},
               {sosd_of(keys, -1), trace_format::sosd_uint64, "says that it has 2 keys, and has 3"},
               {sosd_of(keys), trace_format::sosd_uint32, "says that it has 3 keys, and has 6"},
               {sosd_of(keys).substr(0, 30), trace_format::sosd_uint64, "and a part of one"},
               {"1234", trace_format::sosd_uint64, "no number of keys"},
               {sosd_of(keys, 1), trace_format::automatic, "says that it has 4 keys, and has 3"},
               {sosd_of(keys, -1), trace_format::automatic, "says that it has 2 keys, and has 3"},
               {gzip_of(sosd_of(keys, 1)), trace_format::automatic, "says that it has 4 keys, and has 3"},
               {gzip_of(sosd_of(keys, -1)), trace_format::automatic, "says that it has 2 keys, and has more"},
               {sosd_of(keys).substr(0, 28), trace_format::automatic, "has 2 and a part of one"},
               {sosd_of(std::vector<std::uint32_t>{5, 6, 7, 8, 9, 10}, 1), trace_format::automatic,
                "says that it has 7 keys, and has 6"},
               {std::string(1000, '\1'), trace_format::automatic, "holds no operation"}};
  for (const auto& c : cases) {
    const std::string said = refusal(c.content, {.format = c.format});
    EXPECT_NE(said.find(c.expected), std::string::npos) << said;
    EXPECT_NE(said.find(folder_.file("trace")), std::string::npos) << said;
  }
}

// Such a file has the size of one with requests, and numbers that could be theirs.
TEST_F(trace_formats, keys_of_sosd_with_a_damaged_number_are_no_requests) {
  for (const std::size_t count : {2U, 5U, 20U, 1001U, 20'000U})
    for (const std::uint64_t step : {1U, 10U, 1000U}) {
      std::vector<std::uint64_t> keys(count);
      for (std::size_t i = 0; i < count; ++i) keys[i] = step * (i + 1);
      for (const std::int64_t number :
           {std::int64_t{1} << 62, -1L, std::int64_t{1} << 61, (std::int64_t{1} << 62) + 3}) {
        const std::string said = refusal(sosd_of(keys, number - static_cast<std::int64_t>(count)));
        // So few may be anything, and are no requests.
        const std::string expected = count < 16
                                         ? folder_.file("trace")
                                         : "says that it has " + std::to_string(static_cast<std::uint64_t>(number)) +
                                               " keys, and has " + std::to_string(count);
        EXPECT_NE(said.find(expected), std::string::npos) << count << ' ' << step << ' ' << number << ": " << said;
      }
    }
}

TEST_F(trace_formats, requests_that_have_no_next_one_in_the_file_are_known) {
  words objects(100);
  for (std::size_t i = 0; i < objects.size(); ++i) objects[i] = (i + 1) * 0x9e3779b97f4a7c15;
  EXPECT_EQ(keys_of(read(oracle_of(objects)).run), objects);
  EXPECT_EQ(keys_of(read(oracle_of({7})).run), (words{7}));
  // The start of a trace: the next requests are behind its end.
  words twice = objects;
  twice.insert(twice.end(), objects.begin(), objects.end());
  EXPECT_EQ(keys_of(read(oracle_of(twice).substr(0, objects.size() * 24)).run), objects);
}

TEST_F(trace_formats, a_format_that_is_named_is_used) {
  EXPECT_NE(refusal("INSERT 5\n", {.format = trace_format::ycsb}).find(":1: malformed line"), std::string::npos);
  EXPECT_NE(refusal("INSERT 5\n", {.format = trace_format::twitter}).find(":1: malformed line"), std::string::npos);
  EXPECT_NE(refusal("INSERT t user5 [\n", {.format = trace_format::index_microbench}).find(":1: "), std::string::npos);
  EXPECT_EQ(parse_trace_format("twitter"), trace_format::twitter);
  EXPECT_NE(message_of([] { (void)parse_trace_format("twiter"); }).find("did you mean twitter?"), std::string::npos);
}

TEST_F(trace_formats, texts_of_no_format_name_their_first_line) {
  const std::string said = refusal("alice\nbob\n");
  EXPECT_NE(said.find("holds no operation of a form that is known; it begins with 'alice'"), std::string::npos) << said;
  EXPECT_NE(refusal(std::string("\xff\xfeI\0\n\0", 6)).find("UTF-16"), std::string::npos);
}

TEST_F(trace_formats, a_byte_order_mark_is_no_part_of_the_first_operation) {
  EXPECT_EQ(read("\xef\xbb\xbfINSERT usertable user1 [ x ]\nINSERT usertable user2 [ x ]\n").load.size(), 2U);
  EXPECT_EQ(read("\xef\xbb\xbfINSERT 1\nINSERT 2\n").load.size(), 2U);
  EXPECT_EQ(read("\xef\xbb\xbf"
                 "0,k1,31,172,1,get,0\n")
                .run.size(),
            1U);
}

TEST_F(trace_formats, loads_alone_and_repeated_keys_are_said) {
  const trace all = read("INSERT 1\nINSERT 1\n");
  EXPECT_EQ(all.load.size(), 2U);
  EXPECT_TRUE(has_note(all, "1 of 2 keys of the load occur in it before, and their inserts change nothing"));
  EXPECT_TRUE(has_note(all, "a load only, and no run"));
}

}  // namespace
}  // namespace pmlab::workload
