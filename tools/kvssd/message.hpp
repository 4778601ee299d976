// From exceptions to results of the API, with their messages kept for the program.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/kvssd/kvs_api.h>

#include <exception>
#include <string>
#include <utility>

namespace pmlab::kvssd {

// Of the calling thread: the message of the last function that failed with an exception; empty: none did.
inline thread_local std::string last_message;

// Runs a function of the API. An exception becomes `otherwise`, and its text the thread's message.
template <class Body>
[[nodiscard]] kvs_result guarded(kvs_result otherwise, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& e) {
    try {
      last_message = e.what();
    } catch (...) {
    }
    return otherwise;
  }
}

}  // namespace pmlab::kvssd
