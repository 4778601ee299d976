// Files that a program writes: whole or not at all, and written through where they cannot be replaced.
#include "bench/support/write_file.hpp"
#include <pmlab/base/child_process.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab {
namespace {

namespace fs = std::filesystem;
using tests::message_of;

class written_file : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "file") const { return folder_.file(name); }

  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Names in the folder: a failure must leave none behind.
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path(".")), {}));
  }
  // True if `call` returns true in a child process.
  static bool holds_in_child(const std::function<bool()>& call) {
    child_process child = child_process::forked([&] { ::_exit(call() ? 0 : 1); });
    return child.wait().is_success();
  }

  tests::temporary_folder folder_;
};

TEST_F(written_file, has_the_new_content_and_the_old_mode) {
  write_file(path(), "old");
  EXPECT_EQ(content(path()), "old");
  constexpr mode_t mode = 0640;
  ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  write_file(path(), "new");
  EXPECT_EQ(content(path()), "new");
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode);
  EXPECT_EQ(files(), 1U);
}

TEST_F(written_file, behind_symbolic_links_is_written_and_the_links_stay) {
  fs::create_directory(path("sub"));
  write_file(path("sub/target"), "old");
  fs::create_symlink("sub/target", path("link"));
  fs::create_symlink("link", path("link_to_link"));
  fs::create_symlink("sub/missing", path("dangling"));
  write_file(path("link_to_link"), "new");
  write_file(path("dangling"), "made");
  EXPECT_TRUE(fs::is_symlink(path("link_to_link")));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
  EXPECT_EQ(content(path("sub/target")), "new");
  EXPECT_EQ(content(path("sub/missing")), "made");
  fs::create_symlink("circle", path("circle"));
  EXPECT_NE(message_of([&] { write_file(path("circle"), "x"); }).find("Too many levels"), std::string::npos);
}

TEST_F(written_file, that_is_a_device_stays_one) {
  // By a link, so that a defect harms no device of this machine.
  fs::create_symlink("/dev/full", path());
  const std::string said = message_of([&] { write_file(path(), "text"); });
  EXPECT_NE(said.find(path() + ": No space left on device; "), std::string::npos) << said;
  EXPECT_TRUE(fs::is_symlink(path()));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(written_file, that_is_a_fifo_reaches_its_reader) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = content(path()); });
  write_file(path(), "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(path()));
}

TEST_F(written_file, named_dash_is_standard_output) {
  EXPECT_TRUE(holds_in_child([&] {
    ::dup2(::open(path().c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    std::printf("before ");
    write_file("-", "by dash ");
    // A path to the same file must not replace it: the bytes of before would go.
    write_file(path(), "by path");
    return true;
  }));
  EXPECT_EQ(content(path()), "before by dash by path");
  EXPECT_TRUE(holds_in_child([&] {
    ::dup2(::open("/dev/full", O_WRONLY), STDOUT_FILENO);
    return message_of([] { write_file("-", "text"); }).find("standard output: No space") != std::string::npos;
  }));
}

TEST_F(written_file, that_does_not_fit_leaves_the_old_one) {
  write_file(path(), "old");
  EXPECT_TRUE(holds_in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &little);
    return message_of([&] { write_file(path(), std::string(2000, 'x')); }).find(path()) != std::string::npos;
  }));
  EXPECT_EQ(content(path()), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(written_file, in_no_folder_is_an_error_that_names_it) {
  const std::string said = message_of([&] { write_file(path("no/file"), "text"); });
  EXPECT_NE(said.find(path("no/file") + ": No such file or directory; "), std::string::npos) << said;
  EXPECT_NE(message_of([&] { write_file(path("."), "text"); }), "");
}

TEST_F(written_file, has_a_name_as_long_as_the_file_system_allows) {
  const std::string longest(255, 'x');
  write_file(path(longest), "text");
  EXPECT_EQ(content(path(longest)), "text");
  EXPECT_EQ(files(), 1U);
  EXPECT_NE(message_of([&] { write_file(path(longest + 'x'), "text"); }).find("File name too long"), std::string::npos);
  EXPECT_EQ(files(), 1U);
}

TEST_F(written_file, without_finish_is_as_it_was) {
  write_file(path(), "old");
  {
    output_file file(path());
    file.write("new");
  }
  EXPECT_EQ(content(path()), "old");
  EXPECT_EQ(files(), 1U);
}

}  // namespace
}  // namespace pmlab
