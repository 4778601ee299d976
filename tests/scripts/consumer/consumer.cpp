// An index in DRAM, from a project that knows nothing of pmlab but its target and its headers.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>

#include <iostream>

int main() {
  pmlab::media::dram memory;
  auto index = pmlab::indexes::cceh<pmlab::media::dram>::open(memory);
  index.insert(1, 10);
  index.upsert(1, 11);
  std::cout << index.find(1).value_or(0) << '\n';
  return index.find(1) == 11 && !index.find(2) ? 0 : 1;
}
