// xxHash behind pmlab. A program that includes both, in files of either order, has one xxHash.
#include <pmlab/base/checksum.hpp>

#include "base/tests/xxhash/user.hpp"

#include <cstdio>

#ifdef XXH_INLINE_ALL
#error xxHash is in this file as if it had asked for that
#endif

unsigned long long digest_behind(const user& u, std::string_view text) {
  return digest(u, text) ^ pmlab::checksum(text.data(), text.size());
}

int main() {
  const user u{XXH64_createState()};
  const std::string_view text = "abc";
  const bool agree = digest_before(u, text) == digest_behind(u, text) &&
                     pmlab::checksum(text.data(), text.size()) == XXH3_64bits(text.data(), text.size());
  XXH64_freeState(u.state);
  std::puts(agree ? "they agree" : "they do not agree");
  return agree ? 0 : 1;
}
