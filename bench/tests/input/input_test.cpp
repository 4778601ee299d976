// Files as users bring them: compressed, with marks, with every kind of line end, damaged, and things that are no
// files.
#include <pmlab/base/random.hpp>
#include "support/compressed.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include "bench/input/text_encoding.hpp"
#include "bench/input/text_lines.hpp"
#include "bench/support/read_file.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace pmlab {
namespace {

using namespace std::string_literals;
using tests::gzip_of;
using tests::gzip_of_repeated;
using tests::message_of;
using tests::xz_of;
using tests::zstd_of;
using lines = std::vector<std::string>;

class input_files : public testing::Test {
 protected:
  std::string write(const std::string& content, const std::string& name = "file") {
    std::string path = folder_.file(name);
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static lines lines_of(const std::string& path) {
    input::text_lines text(path, "keys");
    lines all;
    for (std::string_view line; text.next(line);) all.emplace_back(line);
    return all;
  }
  static std::string refusal_of(const std::string& path) {
    return message_of([&] { lines_of(path); });
  }
  tests::temporary_folder folder_;
};

TEST_F(input_files, every_form_of_a_text_has_the_same_lines) {
  const lines right = {"one", "", "two and more", "three"};
  const std::string text = "one\n\ntwo and more\nthree\n";
  const struct {
    const char* what;
    std::string content;
  } cases[] = {
      {"plain", text},
      {"no end at the last line", text.substr(0, text.size() - 1)},
      {"CR LF", "one\r\n\r\ntwo and more\r\nthree\r\n"},
      {"CR LF, no end", "one\r\n\r\ntwo and more\r\nthree"},
      {"cut off within CR LF", "one\r\n\r\ntwo and more\r\nthree\r"},
      {"CR", "one\r\rtwo and more\rthree\r"},
      {"zero bytes", "one\0\0two and more\0three\0"s},
      {"byte order mark", "\xef\xbb\xbf" + text},
      {"byte order mark, CR LF", "\xef\xbb\xbfone\r\n\r\ntwo and more\r\nthree\r\n"},
      {"gzip", gzip_of(text)},
      {"gzip, CR LF and a mark", gzip_of("\xef\xbb\xbfone\r\n\r\ntwo and more\r\nthree\r\n")},
      {"gzip, two members", gzip_of(text.substr(0, 6)) + gzip_of(text.substr(6))},
      {"gzip, an empty member", gzip_of("") + gzip_of(text)},
      {"gzip, padded with zero bytes", gzip_of(text) + std::string(1000, '\0')},
      {"zstd", zstd_of(text)},
      {"zstd, two frames", zstd_of(text.substr(0, 6)) + zstd_of(text.substr(6))},
      {"xz", xz_of(text)},
      {"xz, padded with zero bytes", xz_of(text) + std::string(1000, '\0')},
      {"xz, two streams", xz_of(text.substr(0, 6)) + xz_of(text.substr(6))},
  };
  for (const auto& c : cases) EXPECT_EQ(lines_of(write(c.content)), right) << c.what;
}

TEST_F(input_files, no_lines_are_no_lines) {
  EXPECT_EQ(lines_of(write("")), lines{});
  EXPECT_EQ(lines_of(write("\xef\xbb\xbf")), lines{});
  for (const std::string& packed : {gzip_of(""), zstd_of(""), xz_of("")}) EXPECT_EQ(lines_of(write(packed)), lines{});
  EXPECT_EQ(lines_of("/dev/null"), lines{});
}

TEST_F(input_files, long_texts_pass_through_every_decoder) {
  std::string text;
  lines right;
  for (int i = 0; i < 100'000; ++i) {
    right.push_back("line " + std::to_string(i * 7919) + std::string(static_cast<std::size_t>(i % 50), 'x'));
    text += right.back() + "\n";
  }
  for (const std::string& content : {text, gzip_of(text), zstd_of(text), xz_of(text)})
    EXPECT_TRUE(lines_of(write(content)) == right);
}

TEST_F(input_files, a_line_longer_than_the_buffer_is_known_as_cut) {
  input::text_lines text(write("short\n" + std::string(300'000, 'x') + "\nlast\n"), "keys");
  std::string_view line;
  ASSERT_TRUE(text.next(line) && text.is_whole());
  ASSERT_TRUE(text.next(line));
  EXPECT_FALSE(text.is_whole());
  EXPECT_EQ(line, std::string(256 << 10, 'x'));
  ASSERT_TRUE(text.next(line) && text.is_whole());
  EXPECT_EQ(line, "last");
  EXPECT_EQ(text.number(), 3U);
  EXPECT_EQ(text.place(), folder_.file("file") + ":3");
}

// A gigabyte that is decompressed from a small file, or comes from a device, is not read to its end.
TEST_F(input_files, what_no_text_has_is_refused_at_once_with_the_number_of_the_line) {
  const std::size_t large = std::size_t{1} << 30;
  std::string names;
  for (int i = 0; i < 20'000; ++i) names += "name\0"s;
  const struct {
    const char* what;
    std::string start;
    char filling;
    const char* refused;
  } cases[] = {
      {"zero bytes", "", '\0', ":1: the line has a zero byte"},
      {"zero bytes behind lines", "one\ntwo\n", '\0', ":3: the line has a zero byte"},
      {"zero bytes behind names that end in them", names, '\0', ":1068577: it is the last of 1048577 empty lines"},
      {"a line without end", "one\ntw", 'o', ":2: the line has more than 16 MiB"},
      {"line ends", "one\n", '\n', ":1048578: it is the last of 1048577 empty lines"},
  };
  for (const auto& c : cases) {
    const std::string path = write(gzip_of_repeated(c.start, c.filling, large));
    const std::string said = refusal_of(path);
    EXPECT_NE(said.find(path + c.refused), std::string::npos) << c.what << ": " << said;
  }
  EXPECT_NE(refusal_of("/dev/zero").find("/dev/zero:1: the line has a zero byte"), std::string::npos);
  const std::string said = message_of([] { (void)read_file("/dev/zero", "profile"); });
  EXPECT_NE(said.find("profile '/dev/zero' is no text: line 1 has a zero byte"), std::string::npos) << said;
  const std::string path = write(gzip_of_repeated("{}\n", ' ', large));
  EXPECT_NE(message_of([&] { (void)read_file(path, "profile"); }).find("has more than 67108864 bytes, decompressed"),
            std::string::npos);
}

TEST_F(input_files, what_cannot_be_read_is_refused_with_its_name_and_a_remedy) {
  const std::string text = "one\ntwo\n";
  const std::string random = [] {
    std::string bytes;
    splitmix64 letters(1);
    for (int i = 0; i < 20'000; ++i) bytes += static_cast<char>('a' + letters.below(26));
    return bytes;
  }();
  const struct {
    const char* what;
    std::string content;
    std::vector<const char*> parts;
  } cases[] = {
      {"gzip cut in its head", gzip_of(random).substr(0, 5), {"damaged or truncated gzip"}},
      {"gzip cut inside", gzip_of(random).substr(0, 100), {"damaged or truncated gzip"}},
      {"gzip without its sum", gzip_of(text).substr(0, gzip_of(text).size() - 1), {"damaged or truncated gzip"}},
      {"gzip and something else", gzip_of(text) + "more", {"gzip", "something else follows"}},
      {"zstd cut", zstd_of(random).substr(0, zstd_of(random).size() - 3), {"damaged or truncated zstd"}},
      {"zstd cut in its head", zstd_of(random).substr(0, 5), {"damaged or truncated zstd"}},
      {"zstd and something else", zstd_of(text) + "more text", {"zstd"}},
      {"xz cut", xz_of(random).substr(0, xz_of(random).size() - 3), {"damaged or truncated xz"}},
      {"xz and something else", xz_of(text) + std::string(40, 'x'), {"xz", "something else follows"}},
      {"gzip twice", gzip_of(gzip_of(text)), {"gzip", "within a compressed one"}},
      {"tar in gzip", gzip_of(std::string(257, 'x') + "ustar" + std::string(300, '\0')), {"tar archive"}},
      {"tar", std::string(257, 'x') + "ustar" + std::string(300, '\0'), {"tar archive", "tar -xOf"}},
      {"bzip2", "BZh91AY&SY and more", {"bzip2", "bunzip2 -c"}},
      {"lz4", "\x04\x22\x4d\x18 and more", {"lz4", "lz4 -dc"}},
      {"zip", "PK\x03\x04 and more", {"zip archive", "unzip -p"}},
      {"UTF-16, little end first", "\xff\xfeo\0\n\0"s, {"UTF-16", "iconv -f UTF-16 -t UTF-8"}},
      {"UTF-16, big end first", "\xfe\xff\0o\0\n"s, {"UTF-16", "iconv"}},
      {"UTF-16 without a mark", "o\0n\0e\0\n\0t\0w\0o\0\n\0"s, {"UTF-16LE", "iconv"}},
      {"UTF-16, the other one, without a mark", "\0o\0n\0e\0\n\0t"s, {"UTF-16BE", "iconv"}},
      {"UTF-32", "\xff\xfe\0\0o\0\0\0"s, {"UTF-32", "iconv"}},
      {"UTF-32 without a mark", "o\0\0\0\n\0\0\0"s, {"UTF-32LE", "iconv -f UTF-32LE -t UTF-8"}},
      {"UTF-32, the other one, without a mark", "\0\0\0o\0\0\0\n"s, {"UTF-32BE", "iconv"}},
      {"UTF-16 in gzip", gzip_of("\xff\xfeo\0\n\0"s), {"UTF-16", "iconv"}},
  };
  for (const auto& c : cases) {
    const std::string path = write(c.content);
    for (const std::string& said : {refusal_of(path), message_of([&] { (void)read_file(path, "profile"); })}) {
      EXPECT_NE(said.find("'" + path + "'"), std::string::npos) << c.what << ": " << said;
      for (const char* part : c.parts) EXPECT_NE(said.find(part), std::string::npos) << c.what << ": " << said;
    }
  }
}

TEST_F(input_files, a_compressed_file_whose_first_bytes_are_damaged_is_named) {
  const std::string text = "one\ntwo\n";
  const struct {
    const char* name;
    std::string content;
    const char* form;
  } cases[] = {{"keys.gz", gzip_of(text), "gzip"}, {"keys.zst", zstd_of(text), "zstd"}, {"keys.xz", xz_of(text), "xz"}};
  for (auto c : cases) {
    EXPECT_EQ(lines_of(write(text, c.name)), (lines{"one", "two"})) << "a plain text with the name of another file";
    c.content[1] = '\x01';
    const std::string path = write(c.content, c.name);
    const std::string said = refusal_of(path);
    EXPECT_NE(said.find(path + "' is a damaged or truncated " + c.form + " file"), std::string::npos) << said;
  }
}

TEST_F(input_files, what_is_no_file_is_refused) {
  EXPECT_NE(refusal_of(folder_.file("")).find("it is a directory"), std::string::npos);
  EXPECT_NE(refusal_of(folder_.file("none")).find("No such file or directory"), std::string::npos);
  EXPECT_NE(refusal_of(write("x") + "/y").find("Not a directory"), std::string::npos);
  EXPECT_NE(refusal_of("").find("No such file or directory"), std::string::npos);
  if (::geteuid() == 0) return;  // root reads everything
  const std::string path = write("secret");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_NE(refusal_of(path).find("Permission denied"), std::string::npos);
}

TEST_F(input_files, a_fifo_is_read_to_its_end) {
  const std::string path = folder_.file("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::string packed = gzip_of("one\ntwo\n");
  std::thread writer([&] {
    std::ofstream to(path, std::ios::binary);
    for (const char c : packed) to << c << std::flush;
  });
  EXPECT_EQ(lines_of(path), (lines{"one", "two"}));
  writer.join();
}

TEST_F(input_files, a_whole_text_has_neither_mark_nor_compression) {
  for (const std::string& content : {"a = 1\n"s, "\xef\xbb\xbf" + "a = 1\n"s, gzip_of("a = 1\n"), zstd_of("a = 1\n"),
                                     xz_of("\xef\xbb\xbf" + "a = 1\n"s)})
    EXPECT_EQ(read_file(write(content), "profile"), "a = 1\n");
  EXPECT_EQ(read_file(write(""), "profile"), "");
  const std::string large(5'000'000, 'x');
  EXPECT_EQ(read_file(write(large), "profile"), large);
  // A compressed file of any size is refused before it fills the memory.
  EXPECT_EQ(read_file(write(gzip_of(large)), "profile", large.size()), large);
  const std::string said = message_of([&] { (void)read_file(write(gzip_of(large)), "profile", large.size() - 1); });
  EXPECT_NE(said.find("profile '" + folder_.file("file") + "' has more than 4999999 bytes"), std::string::npos) << said;
}

TEST(text_encoding, control_characters_are_no_text) {
  EXPECT_FALSE(input::is_binary(""));
  EXPECT_FALSE(input::is_binary("a\tb\r\n\xe4\f"));
  EXPECT_TRUE(input::is_binary("a\0b"s));
  EXPECT_TRUE(input::is_binary("\x01"));
}

}  // namespace
}  // namespace pmlab
