// Compiled as a consumer would, run, and examined by every_cpu_code_test.py: one binary for every x86-64.
#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/nv_tree.hpp>
#include <pmlab/media/dram.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>

namespace {

using pmlab::media::dram;

constexpr std::uint64_t entries = 5000;

// Enough for splits, and a scan.
template <class Index>
bool works() {
  dram memory;
  auto index = Index::open(memory);
  for (std::uint64_t key = entries; key-- > 0;) index.insert(key, ~key);
  for (std::uint64_t key = 0; key < 2 * entries; ++key)
    if (index.find(key).value_or(0) != (key < entries ? ~key : 0)) return false;
  if constexpr (pmlab::indexes::ordered_index<Index>) {
    std::array<pmlab::indexes::entry, 100> found{};
    if (index.scan(entries / 2, found) != found.size()) return false;
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i].key != entries / 2 + i) return false;
  }
  return index.erase(1) == pmlab::indexes::outcome::erased && !index.find(1);
}

}  // namespace

int main() {
  using namespace pmlab::indexes;
  if (!works<cceh<dram>>() || !works<fast_fair<dram>>() || !works<fp_tree<dram>>() || !works<nv_tree<dram>>()) return 1;
  std::cout << to_string(pmlab::simd_of_this_cpu()) << '\n';
}
