// The limits of control groups, in folders made as the kernel has them.
#include "bench/support/control_group.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

struct control_group_case {
  const char* what;
  std::string membership;                                    // /proc/self/cgroup
  std::vector<std::pair<std::string, std::string>> files{};  // below /sys/fs/cgroup
  std::uint64_t available = no_limit;
};

TEST(ControlGroup, LeastThatAnyGroupLeaves) {
  const std::vector<control_group_case> cases = {
      {"no groups", "", {}, no_limit},
      {"version 2 without a limit", "0::/\n", {{"memory.max", "max\n"}, {"memory.current", "5\n"}}, no_limit},
      {"version 2", "0::/\n", {{"memory.max", "1000\n"}, {"memory.current", "400\n"}}, 600},
      {"cached files are free",
       "0::/\n",
       {{"memory.max", "1000"},
        {"memory.current", "400"},
        {"memory.stat", "anon 90\nfile 300\ninactive_file 100\nactive_file 50\n"}},
       750},
      {"a nested group",
       "0::/a/b\n",
       {{"a/b/memory.max", "max"}, {"a/memory.max", "700"}, {"a/memory.current", "100"}, {"memory.max", "900"}},
       600},
      {"the inner one is the least", "0::/a/b\n", {{"a/b/memory.max", "50"}, {"a/memory.max", "700"}}, 50},
      {"more is used than allowed", "0::/\n", {{"memory.max", "100"}, {"memory.current", "400"}}, 0},
      {"version 1",
       "4:memory:/a\n0::/\n",
       {{"memory/a/memory.limit_in_bytes", "1000"},
        {"memory/a/memory.usage_in_bytes", "300"},
        {"memory/a/memory.stat", "inactive_file 7\ntotal_inactive_file 20\ntotal_active_file 30\n"},
        {"memory/memory.limit_in_bytes", "9223372036854771712"}},
       750},
      {"version 1, several controllers in one", "3:cpu,memory:/x\n", {{"memory/x/memory.limit_in_bytes", "10"}}, 10},
      {"a container's mount begins at its group",
       "4:memory:/outside/of/it\n",
       {{"memory/memory.limit_in_bytes", "1000"}, {"memory/memory.usage_in_bytes", "1"}},
       999},
      {"a path out of the namespace", "0::/../other\n", {{"memory.max", "8"}}, 8},
      {"both versions", "4:memory:/\n0::/\n", {{"memory.max", "500"}, {"memory/memory.limit_in_bytes", "300"}}, 300},
      {"lines that are none", "nothing\n4:\n", {{"memory.max", "12 34"}}, 12},
  };
  for (const control_group_case& c : cases) {
    SCOPED_TRACE(c.what);
    const temporary_folder folder;
    const std::filesystem::path root = folder.file("");
    std::ofstream(root / "membership") << c.membership;
    for (const auto& [name, content] : c.files) {
      std::filesystem::create_directories((root / "cgroup" / name).parent_path());
      std::ofstream(root / "cgroup" / name) << content;
    }
    EXPECT_EQ(bench::available_to_control_group((root / "membership").string(), (root / "cgroup").string()),
              c.available);
  }
}

}  // namespace
}  // namespace pmlab::tests
