// From exceptions to results of the API, with their messages kept for the program.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/kvssd/kvs_api.h>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace pmlab::kvssd {

// The message of the last function of the calling thread that failed with one; empty: none did.
class last_message {
 public:
  static void set(const char* text) noexcept {
    fixed_ = nullptr;
    try {
      text_ = text;
    } catch (const std::bad_alloc&) {
      set_fixed(no_memory);
    }
  }
  // `text` is a literal.
  static void set_fixed(const char* text) noexcept { fixed_ = text; }
  [[nodiscard]] static const char* get() noexcept { return fixed_ != nullptr ? fixed_ : text_.c_str(); }

  static constexpr const char* no_memory =
      "the process has no memory for the operation, which has changed nothing; free some and try again";

 private:
  static inline thread_local const char* fixed_ = nullptr;
  static inline thread_local std::string text_;
};

// Runs a function of the API. An exception becomes `otherwise`, and its text the thread's message.
template <class Body>
[[nodiscard]] kvs_result guarded(kvs_result otherwise, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    last_message::set_fixed(last_message::no_memory);
  } catch (const std::exception& e) {
    last_message::set(e.what());
  } catch (...) {
    last_message::set_fixed("an exception without a name; report it");
  }
  return otherwise;
}

}  // namespace pmlab::kvssd
