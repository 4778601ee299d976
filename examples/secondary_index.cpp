// Articles by number and by price. The primary index, a hash table, leads from an article's number to its price; the
// secondary one, a HybridIndex+, has all (price, number) in order: its tree in the pool answers ranges, its hash in
// DRAM points. Both are in one pool and survive a crash.
//
//   secondary_index POOL set NUMBER PRICE     a new article, or a new price
//   secondary_index POOL price NUMBER         its price, or "none"
//   secondary_index POOL between LOW HIGH     the articles from the one price to the other, the cheapest first
//   secondary_index POOL                      reads such commands from the standard input, one a line
//
// Numbers and prices are below 2^32.
#include <pmlab/base/quantity.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace {

using pmlab::indexes::outcome;
using pmlab::media::dram;
using pmlab::media::pmem;

class articles {
 public:
  articles(dram& memory, pmem& pool)
      : prices_(primary::open(pool, "prices")), by_price_(secondary::open(memory, pool)) {}

  // New, changed, old: a crash in between leaves an entry of `by_price_` that `prices_` does not confirm, and queries
  // leave those out.
  void set(std::uint64_t number, std::uint64_t price) {
    const std::optional<std::uint64_t> before = prices_.find(number);
    if (before == price) return;
    if (by_price_.insert(key_of(price, number), number) == outcome::full ||
        prices_.upsert(number, price) == outcome::full)
      throw pmlab::error("the pool is full", "make a larger one");
    if (before) by_price_.erase(key_of(*before, number));
  }

  std::optional<std::uint64_t> price(std::uint64_t number) { return prices_.find(number); }

  // Calls function(number, price), by ascending price.
  template <class Function>
  void between(std::uint64_t low, std::uint64_t high, Function&& function) {
    by_price_.for_each_in(key_of(low, 0), key_of(high, most), [&](std::uint64_t key, std::uint64_t number) {
      if (const std::uint64_t price = key >> bits; prices_.find(number) == price) function(number, price);
    });
  }

  static constexpr unsigned bits = 32;
  static constexpr std::uint64_t most = (std::uint64_t{1} << bits) - 1;

 private:
  using primary = pmlab::indexes::cceh<pmem>;
  using secondary = pmlab::hybrid::hybrid_index<pmlab::indexes::cceh<dram>, pmlab::indexes::fast_fair<pmem>,
                                                pmlab::hybrid::primary::tree>;

  // Articles of one price differ in the lower half.
  static std::uint64_t key_of(std::uint64_t price, std::uint64_t number) { return price << bits | number; }

  primary prices_;
  secondary by_price_;
};

std::uint64_t number_in(const std::string& text) {
  const std::uint64_t number = pmlab::parse_count(text, "number", 0);
  if (number > articles::most) throw pmlab::error("number '" + text + "' is too large", "give less than 2^32");
  return number;
}

std::string answer(articles& all, const std::string& line) {
  std::vector<std::string> words;
  std::istringstream parts(line);
  for (std::string word; parts >> word;) words.push_back(word);
  if (words.size() == 3 && words[0] == "set") {
    all.set(number_in(words[1]), number_in(words[2]));
    return "set";
  }
  if (words.size() == 2 && words[0] == "price") {
    const auto price = all.price(number_in(words[1]));
    return price ? std::to_string(*price) : "none";
  }
  if (words.size() == 3 && words[0] == "between") {
    std::string found;
    all.between(number_in(words[1]), number_in(words[2]), [&](std::uint64_t number, std::uint64_t price) {
      found += (found.empty() ? "" : ", ") + std::to_string(number) + " at " + std::to_string(price);
    });
    return found.empty() ? "none" : found;
  }
  throw pmlab::error("'" + line + "' is no command", "write: set NUMBER PRICE, price NUMBER, or between LOW HIGH");
}

int run(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: secondary_index POOL [set NUMBER PRICE | price NUMBER | between LOW HIGH]\n";
    return 2;
  }
  dram memory;
  pmem pool(arguments[1], {.create_bytes = 64 << 20});
  articles all(memory, pool);
  if (count > 2) {
    std::string line = arguments[2];
    for (int i = 3; i < count; ++i) line.append(" ").append(arguments[i]);
    std::cout << answer(all, line) << '\n';
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(all, line) << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) try { return run(count, arguments); } catch (const std::exception& e) {
  std::cerr << "secondary_index: error: " << e.what() << '\n';
  return 1;
}
