// Prefetcher switches, on files that stand for the registers: changes are undone, however the run ends.
#include "microbench/memory/prefetchers.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace pmlab::microbench {
namespace {

namespace fs = std::filesystem;

class Prefetchers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("pmlab-msr-" + std::to_string(::getpid()));
    for (const int cpu : {0, 1}) write(cpu, 0);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(int cpu, std::uint64_t value) {
    fs::create_directories(folder_ / std::to_string(cpu));
    std::ofstream file(path(cpu), std::ios::binary);
    file.seekp(0x1a4);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  [[nodiscard]] std::uint64_t read(int cpu) const {
    std::uint64_t value = ~std::uint64_t{0};
    std::ifstream file(path(cpu), std::ios::binary);
    file.seekg(0x1a4);
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  [[nodiscard]] fs::path path(int cpu) const { return folder_ / std::to_string(cpu) / "msr"; }

  fs::path folder_;
};

TEST_F(Prefetchers, StateIsOfAllCpus) {
  const prefetchers p({0, 1}, folder_);
  EXPECT_EQ(p.state(), "on");
  write(0, 0xf);
  EXPECT_EQ(p.state(), "part off");
  write(1, 0xf);
  EXPECT_EQ(p.state(), "off");
  fs::remove(path(1));
  EXPECT_TRUE(p.state().starts_with("unknown: ")) << p.state();
}

TEST_F(Prefetchers, AreOffForTheRunAndThenAsBefore) {
  write(1, 0x20);
  {
    prefetchers p({0, 1}, folder_);
    p.switch_off();
    EXPECT_EQ(p.state(), "off");
    EXPECT_EQ(read(1), 0x2fU) << "other bits of the register stay";
  }
  EXPECT_EQ(read(0), 0U);
  EXPECT_EQ(read(1), 0x20U);
}

TEST_F(Prefetchers, NotPermittedChangesNothing) {
  fs::remove(path(1));
  prefetchers p({0, 1}, folder_);
  try {
    p.switch_off();
    FAIL();
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("--prefetchers"), std::string::npos) << e.what();
  }
  EXPECT_EQ(read(0), 0U);
}

TEST_F(Prefetchers, AnInterruptPutsThemBack) {
  child_process child = child_process::forked([&] {
    prefetchers p({0, 1}, folder_);
    p.switch_off();
    if (read(0) != 0xf) ::_exit(1);
    ::raise(SIGINT);
    ::_exit(2);
  });
  const exit_reason reason = child.wait();
  EXPECT_EQ(reason.signal, SIGINT) << reason.text();
  EXPECT_EQ(read(0), 0U);
  EXPECT_EQ(read(1), 0U);
}

}  // namespace
}  // namespace pmlab::microbench
