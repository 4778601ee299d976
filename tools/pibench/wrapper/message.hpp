// How a library of pmlab speaks: on stderr, one line at a time.
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::pibench {

// "libpmlab_fast_fair: TEXT". Thread-safe.
inline void say(std::string_view name, std::string_view text) {
  std::string line = "libpmlab_";
  line.append(name).append(": ").append(text).push_back('\n');
  std::fputs(line.c_str(), stderr);
}

// Runs `call`; prints its exception, and rethrows it.
template <class Call>
decltype(auto) saying(std::string_view name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& e) {
    say(name, std::string("error: ") + e.what());
    throw;
  }
}

}  // namespace pmlab::pibench
