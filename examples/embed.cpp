#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/pmem.hpp>

#include <iostream>

int main(int argc, char** argv) {
  namespace media = pmlab::media;
  // Creates the pool on the first run; opens and recovers it on every later one.
  media::pmem pool(argc > 1 ? argv[1] : "/dev/shm/embed.pool", {.create_bytes = 64 << 20});
  auto index = pmlab::indexes::cceh<media::pmem>::open(pool);
  index.insert(42, 4242);                          // unchanged if it is present; durable on return
  index.upsert(1, index.find(1).value_or(0) + 1);  // counts the runs
  std::cout << "42 -> " << *index.find(42) << ", run " << *index.find(1) << '\n';
}
