// Orders of a shop, in a pool of persistent memory: keys and values are types of this program. An order is present
// completely or not at all, after a restart and after a crash.
//
//   orders POOL add NUMBER ARTICLE PIECES PRICE   "added", or "exists" if there is an order of that number
//   orders POOL show NUMBER                       the order, or "none"
//   orders POOL from NUMBER                       up to ten orders from that number on, one a line
//   orders POOL cancel NUMBER                     "cancelled", or "none"
#include <pmlab/base/error.hpp>
#include <pmlab/base/quantity.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/strings/typed_index.hpp>

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

namespace {

using pmlab::indexes::outcome;
using pmlab::media::pmem;

struct order_id {
  std::uint64_t number;
};

// Only types that memcpy may copy: no std::string, and no pointers.
struct order {
  std::uint64_t article;
  std::uint64_t pieces;
  std::uint64_t price_in_cents;
};

using order_index = pmlab::strings::typed_index<order_id, order, pmem, pmlab::indexes::fast_fair<pmem>>;

std::uint64_t number(const char* text, const char* what) { return pmlab::parse_count(text, what, 0); }

std::string text_of(order_id id, const order& o) {
  return std::to_string(id.number) + ": " + std::to_string(o.pieces) + " of article " + std::to_string(o.article) +
         " at " + std::to_string(o.price_in_cents) + " cents";
}

int run(int count, char** arguments) {
  const std::string command = count > 3 ? arguments[2] : "";
  if (count != (command == "add" ? 7 : 4)) {
    std::cerr << "usage: orders POOL add NUMBER ARTICLE PIECES PRICE | show NUMBER | from NUMBER | cancel NUMBER\n";
    return 2;
  }
  pmem pool(arguments[1], {.create_bytes = 64 << 20});
  // An error, if the pool was written by a program whose orders were of other types.
  auto orders = order_index::open(pool, "orders");
  const order_id id{number(arguments[3], "number of an order")};
  if (command == "add") {
    const order ordered{number(arguments[4], "number of an article"), number(arguments[5], "number of pieces"),
                        number(arguments[6], "price")};
    const outcome done = orders.insert(id, ordered);  // durable on return
    if (done == outcome::full) throw pmlab::error("the pool is full", "cancel orders, or make a larger pool");
    std::cout << (done == outcome::inserted ? "added" : "exists") << '\n';
  } else if (command == "show") {
    const auto found = orders.find(id);
    std::cout << (found ? text_of(id, *found) : "none") << '\n';
  } else if (command == "from") {
    constexpr std::size_t most = 10;
    orders.scan(id, most, [](order_id at, const order& found) { std::cout << text_of(at, found) << '\n'; });
  } else if (command == "cancel") {
    std::cout << (orders.erase(id) == outcome::erased ? "cancelled" : "none") << '\n';
  } else {
    throw pmlab::error("'" + command + "' is no command", "write add, show, from or cancel");
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) try { return run(count, arguments); } catch (const std::exception& e) {
  std::cerr << "orders: error: " << e.what() << '\n';
  return 1;
}
