// Drive profiles: the built-in ones reach their published figures, and a wrong one is refused by file, line and key.
//
// docs/drive-profiles.md has the table that this test makes. After a change of the model or of a profile the test
// prints the new one.
#include "bench/devices/drive_file.hpp"
#include "stores/tests/blocks/small_drive.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace pmlab::tests::drive_profile_test {
namespace {

using namespace blocks;

// Published figures; 0: not published, or not found. The profiles name the sources.
struct published {
  std::string_view drive;
  double read_us;   // 4 KB at random, one after the other
  double write_us;  // the same
  double reads_k;   // thousand 4 KB at random per second, deep queues
  double writes_k;  // the same
  double read_mb;   // 10^6 bytes per second, 128 KB in order
  double write_mb;  // the same
  bool empty;       // writes_k is that of an empty drive
  std::size_t depth;
};

constexpr std::array all_published = {
    published{"p4610", 77, 18, 643, 199, 3200, 2080, false, 256},
    published{"9300", 86, 11, 850, 145, 3500, 3500, false, 256},
    published{"5210x4", 0, 0, 360, 18, 2160, 1440, false, 128},
    published{"plain-tlc", 85, 20, 490, 38, 3200, 1050, false, 256},
    published{"no-plp", 1000.0 / 15, 1000.0 / 55, 500, 500, 3500, 2700, true, 256},
    // With the firmware of a block drive; stores/tests/kv_queue_test.cpp has the cells of the key-value firmware.
    published{"pm983-kv", 85, 50, 540, 50, 3200, 2000, false, 256},
};

constexpr std::uint64_t modelled_bytes = std::uint64_t{2} << 30;

struct cell {
  std::string what;
  double publicly;
  double modelled;
  int digits;
};

struct measured {
  std::vector<cell> cells;
  double amplification;
  double flush_us;  // 4 KB written and flushed, steady
  std::string scale;
};

double write_and_flush_us(page_ftl& model, std::uint64_t blocks) {
  random_source random(5);
  picoseconds now = 0;
  constexpr int times = 200;
  for (int i = 0; i < times; ++i) {
    now = model.perform({operation::write, stream::data, 1, random.below(blocks), nullptr, 0}, now);
    now = model.perform({operation::flush, stream::data, 0, 0, nullptr, 0}, now);
  }
  return static_cast<double>(now) / 1e6 / times;
}

measured measure(const published& p) {
  const drive_profile profile = load_drive(p.drive);
  const geometry shape = shape_of(profile, modelled_bytes);
  const std::uint64_t blocks = shape.blocks;
  page_ftl model(profile, shape);
  random_source random(3);
  // Each on a drive with nothing under way.
  const auto run = [&](std::size_t depth, std::uint64_t count, const auto& next) {
    picoseconds now = 0;
    return closed_loop(model, now, depth, count, next);
  };
  const double empty_writes =
      run(p.depth, 40000, at_random(operation::write, 1, blocks / 4, random)).requests_per_s / 1e3;
  model.fill();
  const double read_mb =
      run(32 * profile.links, 20000, in_order(operation::read, 32, blocks)).requests_per_s * 0.131072;
  const double write_mb =
      run(32 * profile.links, blocks / 32 * 2, in_order(operation::write, 32, blocks)).requests_per_s * 0.131072;
  model.fill();
  const double read_us = run(1, 2000, at_random(operation::read, 1, blocks, random)).mean_us;
  model.fill();
  const double reads = run(p.depth, 60000, at_random(operation::read, 1, blocks, random)).requests_per_s / 1e3;
  model.precondition();
  const double write_us = run(1, 2000, at_random(operation::write, 1, blocks, random)).mean_us;
  model.reset_counts();
  const double writes = run(p.depth, 200000, at_random(operation::write, 1, blocks, random)).requests_per_s / 1e3;
  measured all;
  all.amplification = model.counts().amplification();
  EXPECT_EQ(model.check(), "");
  model.precondition();
  all.flush_us = write_and_flush_us(model, blocks);
  all.scale = model.scale().text();
  EXPECT_TRUE(model.scale().keeps_ratios());
  all.cells = {{"4 KB read, us", p.read_us, read_us, 0},
               {"4 KB write, us", p.write_us, write_us, 0},
               {"4 KB random reads, k/s", p.reads_k, reads, 0},
               {p.empty ? "4 KB random writes, k/s, empty drive" : "4 KB random writes, k/s", p.writes_k,
                p.empty ? empty_writes : writes, 0},
               {"128 KB reads in order, MB/s", p.read_mb, read_mb, 0},
               {"128 KB writes in order, MB/s", p.write_mb, write_mb, 0}};
  if (p.empty) all.cells.push_back({"4 KB random writes, k/s, steady", 0, writes, 0});
  return all;
}

std::string number(double value, const char* form) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

std::string rows_of(const published& p, const measured& m) {
  std::string rows;
  for (const cell& c : m.cells)
    rows += "| `" + std::string(p.drive) + "` | " + c.what + " | " +
            (c.publicly == 0 ? std::string("-") : number(c.publicly, "%.0f")) + " | " + number(c.modelled, "%.0f") +
            " | " + (c.publicly == 0 ? std::string("-") : number(100 * (c.modelled / c.publicly - 1), "%+.0f %%")) +
            " |\n";
  rows += "| `" + std::string(p.drive) + "` | write amplification of random writes, steady | - | " +
          number(m.amplification, "%.2f") + " | - |\n";
  rows += "| `" + std::string(p.drive) + "` | 4 KB write and flush, us, steady | - | " + number(m.flush_us, "%.0f") +
          " | - |\n";
  return rows;
}

std::string page() {
  std::ifstream file(std::filesystem::path(PMLAB_TEST_SOURCES) / "docs/drive-profiles.md");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DriveProfile, ReachesThePublishedFigures) {
  std::string table;
  for (const published& p : all_published) {
    SCOPED_TRACE(std::string(p.drive));
    const measured m = measure(p);
    for (const cell& c : m.cells)
      if (c.publicly != 0) {
        EXPECT_LT(std::abs(c.modelled / c.publicly - 1), 0.15) << c.what << ": " << c.modelled << " for " << c.publicly;
      }
    table += rows_of(p, m);
  }
  EXPECT_PRED2(says, page(), table)
      << "docs/drive-profiles.md has other figures than the model. Replace its table by:\n"
      << table;
}

TEST(DriveProfile, AFlushIsSlowWithoutCapacitorsOnly) {
  const auto flush_us = [](std::string_view name) {
    const drive_profile profile = load_drive(name);
    const geometry shape = shape_of(profile, modelled_bytes / 4);
    page_ftl model(profile, shape);
    return write_and_flush_us(model, shape.blocks);
  };
  EXPECT_LT(flush_us("p4610"), 50);
  EXPECT_GT(flush_us("no-plp"), 1000);
  EXPECT_LT(flush_us("no-plp"), 2000);
  EXPECT_TRUE(shape_of(load_drive("no-plp"), 1 << 20).volatile_cache);
  EXPECT_FALSE(shape_of(load_drive("p4610"), 1 << 20).volatile_cache);
}

TEST(DriveProfile, AllExpectedOnesAreBuiltIn) {
  for (const published& p : all_published) {
    const drive_profile profile = load_drive(p.drive);
    EXPECT_EQ(profile.name, p.drive);
    EXPECT_FALSE(profile.description.empty());
    EXPECT_PRED2(says, page(), "| `" + profile.name + "` | " + profile.description) << profile.name;
  }
  EXPECT_EQ(drive_names().size(), all_published.size());
}

// `p4610` with one line replaced.
std::string p4610_with(const std::string& key, const std::string& line) {
  std::string text;
  for (const auto& builtin : blocks::detail::builtin_drives())
    if (builtin.name == "p4610") text = builtin.text;
  const std::size_t start = text.find("\n" + key + " =") + 1;
  return text.replace(start, text.find('\n', start) - start, line);
}

TEST(DriveProfile, RefusesByFileLineAndKey) {
  const auto refused = [](const std::string& key, const std::string& line) {
    return message_of([&] { static_cast<void>(parse_drive(p4610_with(key, line), "mine.toml")); });
  };
  const auto contains = [](const std::string& message, std::initializer_list<const char*> parts) {
    for (const char* const part : parts)
      if (message.find(part) == std::string::npos)
        return ::testing::AssertionFailure() << "'" << message << "' does not contain '" << part << "'";
    return ::testing::AssertionSuccess();
  };
  EXPECT_TRUE(contains(refused("read_ns", "read_ns = -1"), {"mine.toml:", "'read_ns'", "negative"}));
  EXPECT_TRUE(contains(refused("read_ns", "raed_ns = 1"), {"mine.toml:", "'raed_ns'", "did you mean 'read_ns'"}));
  EXPECT_TRUE(contains(refused("read_ns", "# gone"), {"mine.toml", "missing key", "read_ns", "drives/"}));
  EXPECT_TRUE(contains(refused("channels", "channels = 0"), {"channels", "out of range"}));
  EXPECT_TRUE(contains(refused("planes", "planes = 1.5"), {"planes", "whole number"}));
  EXPECT_TRUE(contains(refused("capacitor", "capacitor = 1"), {"capacitor", "neither true nor false"}));
  EXPECT_TRUE(contains(refused("page_bytes", "page_bytes = 12000"), {"'mine'", "page_bytes is 12000", "power of two"}));
  EXPECT_TRUE(contains(refused("buffer_bytes", "buffer_bytes = 4096"), {"'mine'", "buffer_bytes", "too little"}));
}

TEST(DriveProfile, ReadsAFileAndSuggestsTheNearestName) {
  const auto path = std::filesystem::temp_directory_path() / ("drive-" + std::to_string(getpid()) + ".toml");
  std::ofstream(path) << p4610_with("read_ns", "read_ns = 12345");
  EXPECT_EQ(load_drive(path.string()).read_ns, 12345);
  std::filesystem::remove(path);
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(load_drive(path.string())); }), "drive profile");
  const std::string unknown = message_of([] { static_cast<void>(load_drive("p4601")); });
  EXPECT_PRED2(says, unknown, "did you mean 'p4610'");
}

}  // namespace
}  // namespace pmlab::tests::drive_profile_test
