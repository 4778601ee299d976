// Needs the standard library alone.
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>

#include <iostream>

int main() {
  pmlab::media::dram memory;
  auto index = pmlab::indexes::fast_fair<pmlab::media::dram>::open(memory);
  for (std::uint64_t key = 0; key < 1000; ++key) index.insert(key, 2 * key);
  std::cout << index.size() << " entries, 21 -> " << index.find(21).value_or(0) << '\n';
}
