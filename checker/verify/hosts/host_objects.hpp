// What each host has loaded of a subject: its own copy of the code, with variables of its own.
#pragma once

#include "checker/simulator/machine/libraries.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace pmlab::verify {

struct subject;

// Thread safety: none.
class host_objects {
 public:
  // Those of this subject, which is kept as long as the process.
  [[nodiscard]] static host_objects& of(const subject& kind);

  // The host has loaded an object of these parts.
  void add(unsigned host, const std::vector<simulator::object_part>& parts);
  [[nodiscard]] bool has(unsigned host) const noexcept;
  // All of their parts.
  [[nodiscard]] std::span<const simulator::host_memory> memory() const noexcept { return memory_; }

  // The variables are as they are to be when a round begins.
  void remember();
  // They are not any more: an index keeps something from round to round, as a lock that a host held when it died. True
  // where they are too many to be compared.
  [[nodiscard]] bool have_changed() const noexcept;

 private:
  static constexpr std::size_t most_compared_bytes = std::size_t{4} << 20;

  std::vector<simulator::host_memory> memory_;
  std::vector<simulator::code_range> variables_;
  std::vector<std::byte> remembered_;  // their bytes, one behind the other
  std::size_t bytes_ = 0;
};

}  // namespace pmlab::verify
