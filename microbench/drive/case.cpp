#include "microbench/drive/case.hpp"

namespace pmlab::drive {

std::string_view to_string(access value) noexcept { return value == access::read ? "read" : "write"; }

std::string_view to_string(order value) noexcept { return value == order::sequential ? "sequential" : "random"; }

std::string_view to_string(durability value) noexcept {
  switch (value) {
    case durability::none: return "none";
    case durability::flush: return "flush";
    case durability::durable: return "durable";
  }
  return "?";
}

}  // namespace pmlab::drive
