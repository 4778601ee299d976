// Entries as text: written text is read again, and an invalid text is refused with file and line.
#include "tools/pool/dump_text.hpp"
#include "tools/pool/strings_text.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/printable.hpp"
#include "support/message_of.hpp"

#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::pool {
namespace {

using indexes::entry;

const std::string header = R"(# pmlab-dump 1 {"root":"orders","index":"cceh"})"
                           "\n";

std::string written(const std::string& root, const std::vector<entry>& entries, std::size_t roots_left = 0) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  write_root(file.get(), "text", root, bench::find_index("fast_fair"), entries, roots_left);
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

// The error of a text; empty: none.
std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_dump(text, "d.txt"));
    return {};
  } catch (const error& e) {
    EXPECT_PRED2(tests::says, std::string(e.what()), "; ") << "no remedy: " << e.what();
    return e.what();
  }
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  const std::string said = refusal(text);
  EXPECT_FALSE(said.empty()) << text;
  for (const std::string& part : parts) EXPECT_PRED2(tests::says, said, part);
}

TEST(Printable, NamesAreReadAgain) {
  for (const auto& [name, shown] : {std::pair<std::string, std::string>{"orders", "orders"},
                                    {"Auftr\xc3\xa4ge", "Auftr\xc3\xa4ge"},
                                    {"Auftr\xe4ge", R"(Auftr\xe4ge)"},
                                    {R"(Auftr\xe4ge)", R"(Auftr\\xe4ge)"},
                                    {R"(a\b)", R"(a\b)"},
                                    {R"(a\\b)", R"(a\\\\b)"},
                                    {"a\\\n", R"(a\\\x0a)"},
                                    {"\xed\xa0\x80", R"(\xed\xa0\x80)"},
                                    {"\xc0\xaf", R"(\xc0\xaf)"},
                                    {"\xf4\x90\x80\x80", R"(\xf4\x90\x80\x80)"},
                                    {"\xe2\x82", R"(\xe2\x82)"},
                                    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}}) {
    EXPECT_EQ(printable(name), shown);
    EXPECT_EQ(name_of_printable(shown), name);
  }
}

TEST(DumpText, NamesOfAnyBytesAreReadAgainAndOthersAreNotEscaped) {
  for (const std::string name : {"Auftr\xe4ge", "Auftr\\xe4ge", "a\\\\b", "a\nb", "\xff\\"})
    EXPECT_EQ(parse_dump(written(name, {{1, 2}}), "d.txt").at(0).name, name);
  EXPECT_PRED2(tests::says, written("Auftr\xe4ge", {}), R"({"root":"Auftr\\xe4ge","escaped":true,)");
  EXPECT_EQ(written("a\\xe4", {}).find("escaped"), std::string::npos);
  // As earlier releases have written it.
  EXPECT_EQ(parse_dump(R"(# pmlab-dump 1 {"root":"a\\xe4","index":"cceh"})", "d.txt").at(0).name, R"(a\xe4)");
  expect_refused(R"(# pmlab-dump 1 {"root":"a","index":"cceh","escaped":1})", {"d.txt:1", "escaped"});
}

TEST(DumpText, WhatIsWrittenIsReadAgain) {
  constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  const std::vector<entry> entries = {{0, last}, {1, 0}, {42, 4242}, {last, 7}};
  const std::string text = written("my \"orders\"", entries) + written("empty", {});
  EXPECT_PRED2(tests::says, text, "\n42 4242\n");
  const std::vector<dumped_root> roots = parse_dump(text, "d.txt");
  ASSERT_EQ(roots.size(), 2U);
  EXPECT_EQ(roots[0].name, "my \"orders\"");
  EXPECT_EQ(roots[0].index->name, "fast_fair");
  EXPECT_EQ(roots[0].entries, entries);
  EXPECT_EQ(roots[1].name, "empty");
  EXPECT_TRUE(roots[1].entries.empty());
}

TEST(DumpText, PeopleWriteItTooAndInAnyOrder) {
  const std::vector<dumped_root> roots = parse_dump(header + "9 1\r\n\n  3\t2 \n", "d.txt");
  ASSERT_EQ(roots.size(), 1U);
  EXPECT_EQ(roots[0].entries, (std::vector<entry>{{3, 2}, {9, 1}}));
}

TEST(DumpText, WhatIsNoDumpIsRefusedWithItsPlace) {
  expect_refused("", {"d.txt", "empty"});
  expect_refused("1 2\n", {"d.txt:1", "before any header"});
  expect_refused("# something else\n", {"d.txt:1", "no header"});
  expect_refused("# pmlab-dump 2 {}\n", {"d.txt:1", "no header"});
  expect_refused("# pmlab-dump 1 {\n", {"d.txt:1", "\"root\""});
  expect_refused("# pmlab-dump 1 {\"root\":\"a\"}\n", {"d.txt:1", "\"index\""});
  expect_refused("# pmlab-dump 1 {\"root\":\"\",\"index\":\"cceh\"}\n", {"cannot name a root"});
  expect_refused("# pmlab-dump 1 {\"root\":\"a\\u0000\",\"index\":\"cceh\"}\n",
                 {"d.txt:1", "'a\\0' cannot name a root"});
  expect_refused("# pmlab-dump 1 {\"root\":\"a\",\"index\":\"ceh\"}\n", {"d.txt:1", "did you mean cceh"});
  for (const char* const line : {"1", "1 x", "x 1", "-1 2", "1 2 3", "1,2", "18446744073709551616 1", "0x1 2", "1.5 2"})
    expect_refused(header + "5 5\n" + line + "\n", {"d.txt:3"});
  expect_refused(header + "1 2\n1 3\n", {"key 1", "twice"});
  expect_refused(header + "1 2\n" + header, {"d.txt:3", "'orders' occurs twice"});
}

TEST(DumpText, ATextThatWasCutOffIsRefused) {
  const std::string text = written("orders", {{1, 1}, {2, 2}, {30, 3}});
  EXPECT_EQ(refusal(text), "");
  expect_refused(text.substr(0, text.size() - 5), {"has 2 entries", "its header has 3"});
}

TEST(DumpText, EachCutOfATextIsRefused) {
  const std::string text = written("orders", {{1, 1}, {30, 345}}, 2) + written("empty", {}, 1) +
                           written("customers", {{7, 18}, {90, 12345}});
  EXPECT_EQ(refusal(text), "");
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) EXPECT_NE(refusal(text.substr(0, bytes)), "") << bytes;
  expect_refused(text.substr(0, text.size() - 1), {"d.txt:7", "the line has no end"});
  expect_refused(text.substr(0, text.find("\n# pmlab-dump 1 {\"root\":\"empty") + 1),
                 {"1 roots are there", "there are 3"});
  // Roots may be more than a header says: texts are put together.
  EXPECT_EQ(refusal(text + written("more", {{1, 2}})), "");
}

TEST(StringsText, EveryByteComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes :
       {std::string(), std::string(1, '\0'), std::string("a b"), std::string("100%"), std::string("#x"), all}) {
    const std::string text = percent_encoded(bytes);
    EXPECT_EQ(text.find_first_of(" \t\n#"), std::string::npos) << text;
    EXPECT_EQ(percent_decoded(text), bytes) << text;
    EXPECT_EQ(entry_of(line_of({bytes, all}, "blobs"), "blobs"), std::pair(bytes, all));
  }
  EXPECT_EQ(percent_encoded("usr/share/doc"), "usr/share/doc");
}

TEST(StringsText, WhatIsNoEntryIsRefused) {
  for (const char* const text : {"", "%4", "%zz", "a%", "a b"}) EXPECT_EQ(percent_decoded(text), std::nullopt) << text;
  const std::string strings = R"(# pmlab-dump 1 {"root":"s","index":"cceh","strings":"words"})"
                              "\n";
  EXPECT_EQ(refusal(strings + "a 1\n% 18446744073709551615\n"), "");
  for (const char* const line : {"a", "a b", "a -1", "a 1 2", "%x 1"})
    expect_refused(strings + line + "\n", {"d.txt:2"});
  expect_refused(strings + "a 1\na 2\n", {"key a", "twice"});
  expect_refused("# pmlab-dump 1 {\"root\":\"s\",\"index\":\"cceh\",\"strings\":\"texts\"}\n", {"words or blobs"});
}

}  // namespace
}  // namespace pmlab::pool
