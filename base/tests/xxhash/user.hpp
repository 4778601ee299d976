// An application's own use of xxHash as a library.
#pragma once

#include <xxhash.h>

#include <string_view>

struct user {
  XXH64_state_t* state;
};
unsigned long long digest_before(const user& u, std::string_view text);
unsigned long long digest_behind(const user& u, std::string_view text);

inline unsigned long long digest(const user& u, std::string_view text) {
  const bool works = XXH64_reset(u.state, 1) == XXH_OK && XXH64_update(u.state, text.data(), text.size()) == XXH_OK;
  return works ? XXH64_digest(u.state) : 0;
}
