// An index in DRAM whose operations a test may interfere with.
#pragma once

#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "support/forwarding_index.hpp"

namespace pmlab::tests {

// `on_call` is called before each update and find; set it before the index is used.
class wrapped_index : public forwarding_index<indexes::cceh<media::dram>> {
  using inner_index = indexes::cceh<media::dram>;

 public:
  static inline std::function<void()> on_call = [] {};

  static wrapped_index open(media::dram& medium, std::string_view name) { return wrapped_index(medium, name); }

  indexes::outcome update(std::uint64_t key, std::uint64_t value) {
    on_call();
    return inner().update(key, value);
  }
  std::optional<std::uint64_t> find(std::uint64_t key) {
    on_call();
    return inner().find(key);
  }

 private:
  wrapped_index(media::dram& medium, std::string_view name)
      : forwarding_index([&] { return inner_index::open(medium, name); }) {}
};

}  // namespace pmlab::tests
