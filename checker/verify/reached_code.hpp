// The functions of a shared object that a campaign has reached, by their accesses to memory.
//
// The machine marks the place of every access that it sees; the disassembly of the object has the places of all. A
// function without a single access to shared memory is not counted. Functions that the compiler has inlined are counted
// by themselves: the debug information names them.
#pragma once

#include "checker/simulator/machine/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::verify {

struct reached_functions {
  std::size_t all = 0;
  std::vector<std::string> never;  // reached: "name (file:line)", in the order of their files
};

// Thread safety: none. Marks are shared with the processes that this one makes.
class reached_code {
 public:
  // `path`: a shared object that is loaded. Throws std::runtime_error: no memory.
  explicit reached_code(std::string path);
  reached_code(const reached_code&) = delete;
  reached_code& operator=(const reached_code&) = delete;
  ~reached_code();

  // For machine::record: the object itself, or another loaded copy of it, by the address of any of its functions.
  [[nodiscard]] simulator::recorded_code object() const noexcept { return at(base_); }
  [[nodiscard]] simulator::recorded_code copy_with(const void* function) const;
  // The same as object(), with marks of its own: `marks` gets its size.
  [[nodiscard]] simulator::recorded_code object(std::vector<std::uint8_t>& marks) const;

  // Takes about a second for each megabyte of code. Nothing (all == 0): there are no tools to read the object with.
  [[nodiscard]] reached_functions functions() const;

 private:
  [[nodiscard]] simulator::recorded_code at(std::uintptr_t base) const noexcept { return {base, bytes_, marks_}; }

  std::string path_;
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;  // bytes of the mapped object
  std::uint8_t* marks_ = nullptr;
};

}  // namespace pmlab::verify
