// A case of a drive: requests of one kind, so many of them in flight. Plain data; one point of a suite.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::drive {

enum class access : std::uint8_t { read, write };

enum class order : std::uint8_t {
  sequential,  // one request begins where the last one ended; at the end of the device it goes on at its start
  random       // each aligned place with the same probability
};

// When the write of a request counts as done.
enum class durability : std::uint8_t {
  none,    // when it has completed
  flush,   // when a flush has completed that was submitted after it completed
  durable  // when a durable write has completed
};

struct drive_case {
  std::string name;                 // "random-read/bytes=4096/depth=32"; unique in a suite
  std::vector<std::string> claims;  // "M22": the claims that it is evidence for
  access what = access::read;
  order where = order::random;
  durability until = durability::none;
  std::uint64_t bytes = 4096;  // bytes of a request; a multiple of 512
  unsigned depth = 1;          // requests in flight
  bool beside_fio = false;     // fio measures it too, where fio is installed
};

// The words for a value, as results and tables have them.
[[nodiscard]] std::string_view to_string(access value) noexcept;
[[nodiscard]] std::string_view to_string(order value) noexcept;
[[nodiscard]] std::string_view to_string(durability value) noexcept;

}  // namespace pmlab::drive
