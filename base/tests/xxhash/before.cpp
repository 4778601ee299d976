// xxHash before pmlab.
#include "base/tests/xxhash/user.hpp"

#include <pmlab/base/checksum.hpp>

unsigned long long digest_before(const user& u, std::string_view text) {
  return digest(u, text) ^ pmlab::checksum(text.data(), text.size());
}
