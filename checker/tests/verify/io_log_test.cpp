// `pmlab verify --io-log`: the crash states of a recorded device, and logs that are no good.
#include "checker/verify/io_log_states.hpp"

#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/recorded.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace pmlab::verify {
namespace {

using recorded_memory = blocks::recorded<blocks::memory>;
using recorded_file = blocks::recorded<blocks::file>;

constexpr blocks::geometry shape{.blocks = 64, .block_bytes = 512, .atomic_bytes = 512};

// Records of two blocks, in two places: number n lies in block 2 * (n % 16) and the one after it. Block 60 counts them.
// Each is acknowledged by a mark.
template <class Device>
class counting {
 public:
  // `arguments` build the device that is recorded.
  template <class... Arguments>
  counting(const std::string& log, bool flushes, Arguments&&... arguments)
      : device_(log, std::forward<Arguments>(arguments)...), blocks_(device_), flushes_(flushes) {}

  void add() {
    ++number_;
    put(2 * (number_ % 16));
    put(2 * (number_ % 16) + 1);
    if (flushes_) blocks_.flush();
    put(60);
    blocks_.flush();
    device_.mark(std::to_string(number_));
  }

 private:
  void put(std::uint64_t block) {
    std::memcpy(buffer_.data(), &number_, sizeof number_);
    blocks_.write(block, buffer_.bytes());
  }

  Device device_;
  blocks::synchronous<Device> blocks_;
  blocks::buffer buffer_{512};
  bool flushes_;
  std::uint64_t number_ = 0;
};

class counting_program : public counting<recorded_memory> {
 public:
  counting_program(const std::string& log, bool flushes) : counting(log, flushes, shape) {}
};

std::uint64_t number_at(const std::vector<char>& image, std::uint64_t block) {
  std::uint64_t number = 0;
  std::memcpy(&number, image.data() + block * 512, sizeof number);
  return number;
}

std::string all_counted_is_there(const io_log_state& state) {
  std::ifstream file(state.image, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::uint64_t counted = number_at(image, 60);
  if (!state.marks.empty() && counted < std::stoull(state.marks.back())) return "an acknowledged record is not counted";
  if (counted == 0) return {};
  for (const std::uint64_t block : {2 * (counted % 16), 2 * (counted % 16) + 1})
    if (number_at(image, block) != counted && number_at(image, block) != counted + 16)
      return "record " + std::to_string(counted) + " is counted, and block " + std::to_string(block) + " holds " +
             std::to_string(number_at(image, block));
  return {};
}

io_log_result explore(const std::string& log, bool may_be_cut_off = false) {
  io_log_options options;
  options.log = log;
  options.may_be_cut_off = may_be_cut_off;
  return explore_io_log(options, all_counted_is_there, {});
}

// The problem that it is refused for; "": it is not.
std::string refusal_of(const io_log_options& options) {
  try {
    static_cast<void>(explore_io_log(options, {}, {}));
  } catch (const error& e) {
    return e.what();
  }
  return {};
}

TEST(io_log, every_state_of_a_sound_program_is_sound) {
  const tests::temporary_folder folder;
  const std::string log = folder.file("log");
  counting_program program(log, true);
  for (int i = 0; i < 40; ++i) program.add();
  const io_log_result result = explore(log);
  EXPECT_FALSE(result.found) << result.found->what << result.found->lost;
  EXPECT_EQ(result.writes, 120u);
  EXPECT_EQ(result.flushes, 80u);
  EXPECT_EQ(result.unflushed, 0u);
  EXPECT_GT(result.checked, 200u);
}

TEST(io_log, a_missing_flush_is_found_with_the_write_that_was_lost) {
  const tests::temporary_folder folder;
  const std::string log = folder.file("log");
  counting_program program(log, false);
  for (int i = 0; i < 4; ++i) program.add();
  const io_log_result result = explore(log);
  ASSERT_TRUE(result.found);
  EXPECT_NE(result.found->lost.find("the write of 1 block(s) from block"), std::string::npos) << result.found->lost;
  EXPECT_EQ(std::filesystem::file_size(result.found->image), shape.bytes());
  EXPECT_NE(all_counted_is_there({result.found->image, {}}), "");
}

TEST(io_log, an_acknowledgement_before_the_flush_is_counted) {
  const tests::temporary_folder folder;
  const std::string log = folder.file("log");
  {
    recorded_memory d(log, shape);
    blocks::synchronous<recorded_memory> b(d);
    blocks::buffer buffer(512);
    b.write(3, buffer.bytes());
    d.mark("done");
    b.flush();
    d.mark("flushed");
  }
  io_log_options options;
  options.log = log;
  EXPECT_EQ(explore_io_log(options, {}, {}).unflushed, 1u);
}

std::vector<std::string> marks_in(const std::string& log) {
  blocks::io_log_reader reader(log);
  std::vector<std::string> marks;
  while (const auto e = reader.next())
    if (e->record.event == blocks::io_event::mark) marks.emplace_back(e->text());
  return marks;
}

// On a real file. What the kill left in the file is one of the states, too.
TEST(io_log, a_killed_program_leaves_a_file_and_a_log_whose_states_are_sound) {
  const tests::temporary_folder folder;
  constexpr int kills = 12;
  splitmix64 random(7);
  std::uint64_t marks = 0;
  for (int i = 0; i < kills; ++i) {
    // A log of its own: a program that is killed before it has begun one leaves none.
    const std::string log = folder.file("log" + std::to_string(i));
    const std::string path = folder.file("drive" + std::to_string(i));
    blocks::create_file(path, shape.bytes());
    child_process child = child_process::forked([&] {
      const blocks::file_options options{.block_bytes = shape.block_bytes, .page_cache = true};
      counting<recorded_file> program(log, true, path, options);
      for (int n = 0; n < 100'000; ++n) program.add();
    });
    ::usleep(static_cast<useconds_t>(2000 + random.below(6000)));
    child.kill();
    static_cast<void>(child.wait());
    if (!std::filesystem::exists(log) || std::filesystem::file_size(log) < sizeof(blocks::io_log_header)) continue;
    EXPECT_EQ(all_counted_is_there({path, marks_in(log)}), "") << "seed 7, kill " << i;
    io_log_options options;
    options.log = log;
    options.may_be_cut_off = true;
    options.states_per_point = 3;
    options.budget_seconds = 1;
    const io_log_result result = explore_io_log(options, all_counted_is_there, {});
    EXPECT_FALSE(result.found) << "seed 7, kill " << i << ": " << result.found->what << result.found->lost;
    marks += result.marks;
  }
  EXPECT_GT(marks, 0u);
}

TEST(io_log, a_command_judges_an_image_and_sees_the_marks) {
  const tests::temporary_folder folder;
  const std::string image = folder.file("image");
  std::ofstream(image) << "content";
  const std::vector<std::string> marks{"one", "two"};
  EXPECT_EQ(check_by_command("grep -q content", 10)({image, marks}), "");
  EXPECT_EQ(check_by_command("grep -q two \"$PMLAB_IO_MARKS\" && test -f", 10)({image, marks}), "");
  EXPECT_EQ(check_by_command("echo torn; false", 10)({image, marks}), "the check ended with status 1: torn");
  EXPECT_THROW(static_cast<void>(check_by_command("./no-such-program", 10)({image, marks})), error);
  // A check that crashes or never ends is no verdict on the state, until it has found one sound.
  const auto refusal = [&](const std::string& command, double seconds) -> std::string {
    try {
      return "verdict: " + check_by_command(command, seconds)({image, marks});
    } catch (const error& e) {
      return e.what();
    }
  };
  EXPECT_NE(refusal("kill -SEGV $$; true", 10).find("died of signal 11"), std::string::npos)
      << refusal("kill -SEGV $$; true", 10);
  EXPECT_NE(refusal("sleep 20; true", 0.2).find("did not end within"), std::string::npos);
  const auto becomes = [&](const char* content) { std::ofstream(image) << content; };
  for (const auto& [fails, expected] : {std::pair{"kill -SEGV $$", "the check died of signal 11 (Segmentation fault)"},
                                        {"sleep 20", "the check did not end within 2 s"}}) {
    becomes("content");
    const auto check = check_by_command("grep -q content {} || " + std::string(fails), 2);
    EXPECT_EQ(check({image, marks}), "");
    becomes("lost");
    EXPECT_EQ(check({image, marks}), expected);
  }
  // Not by the state, in all likelihood.
  becomes("content");
  const auto killed = check_by_command("grep -q content {} || kill -KILL $$", 2);
  EXPECT_EQ(killed({image, marks}), "");
  becomes("lost");
  EXPECT_THROW(static_cast<void>(killed({image, marks})), error);
}

TEST(io_log, a_log_that_is_cut_off_is_refused_unless_it_may_be) {
  const tests::temporary_folder folder;
  const std::string log = folder.file("log");
  {
    counting_program program(log, true);
    program.add();
  }
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 20);
  io_log_options options;
  options.log = log;
  EXPECT_NE(refusal_of(options).find("ends in the middle of a record"), std::string::npos) << refusal_of(options);
  EXPECT_TRUE(explore(log, true).cut_off);
}

TEST(io_log, an_image_of_another_device_is_refused) {
  const tests::temporary_folder folder;
  io_log_options options;
  options.log = folder.file("log");
  counting_program(options.log, true).add();
  options.base = folder.file("base");
  std::ofstream(options.base) << std::string(4096, 'x');
  EXPECT_NE(refusal_of(options).find("has 4096 bytes"), std::string::npos) << refusal_of(options);
  std::filesystem::resize_file(options.base, shape.bytes());
  EXPECT_EQ(refusal_of(options), "");
}

// Requests of a larger device, behind the header of a smaller one.
TEST(io_log, records_of_another_device_are_refused) {
  const tests::temporary_folder folder;
  const auto content = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  io_log_options options;
  options.log = folder.file("large");
  counting_program(options.log, true).add();
  const std::string small = folder.file("small");
  { const recorded_memory d(small, blocks::geometry{.blocks = 8, .block_bytes = 512}); }
  const std::string joined = content(small) + content(options.log).substr(sizeof(blocks::io_log_header));
  options.log = folder.file("joined");
  std::ofstream(options.log, std::ios::binary) << joined;
  EXPECT_NE(refusal_of(options).find("a request beyond its device"), std::string::npos) << refusal_of(options);
}

}  // namespace
}  // namespace pmlab::verify
