// A cache in DRAM in front of a tree in a pool. Replays a log of accesses, for example of a key-value server, and
// prints the share of it that the cache answered.
//
//   cached_fast_fair POOL LOG [ENTRIES]
//
// LOG ("-": standard input) has a key a line, which is read, or a key and a value, which is written. ENTRIES: of the
// cache; default: 1000.
#include <pmlab/base/quantity.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/pmem.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

using pmlab::media::pmem;
// The cache has the interface of its index, and can replace it.
using cached_tree = pmlab::cache::async_cache<pmlab::indexes::fast_fair<pmem>>;

void replay(std::istream& log, cached_tree& index) {
  std::uint64_t reads = 0;
  std::uint64_t found = 0;
  std::uint64_t writes = 0;
  for (std::string line; std::getline(log, line);) {
    std::istringstream words(line);
    std::string key;
    std::string value;
    if (!(words >> key)) continue;
    if (!(words >> value)) {
      ++reads;
      if (index.find(pmlab::parse_count(key, "key", 0))) ++found;
      continue;
    }
    ++writes;
    // Durable on return; a cached value of the key is updated or removed.
    const auto done = index.upsert(pmlab::parse_count(key, "key", 0), pmlab::parse_count(value, "value", 0));
    if (done == pmlab::indexes::outcome::full) throw pmlab::error("the pool is full", "make a larger one");
  }
  const pmlab::cache::statistics seen = index.cache_statistics();
  std::cout << writes << " writes, " << reads << " reads, " << found << " found, " << seen.hits << " in the cache\n";
}

int run(int count, char** arguments) {
  if (count < 3 || count > 4) {
    std::cerr << "usage: cached_fast_fair POOL LOG [ENTRIES]\n";
    return 2;
  }
  const std::string path = arguments[2];
  std::ifstream file;
  if (path != "-") file.open(path);
  if (!file) throw pmlab::error("cannot read " + path, "name a log, or - for the standard input");
  const std::uint64_t entries = pmlab::parse_count(count == 4 ? arguments[3] : "1000", "number of entries");

  pmem pool(arguments[1], {.create_bytes = 64 << 20});
  auto index = cached_tree::open(pool, cached_tree::layout_name, {.size = pmlab::cache::capacity::entries(entries)});
  replay(path == "-" ? std::cin : file, index);
  return 0;
}

}  // namespace

int main(int count, char** arguments) try { return run(count, arguments); } catch (const std::exception& e) {
  std::cerr << "cached_fast_fair: error: " << e.what() << '\n';
  return 1;
}
