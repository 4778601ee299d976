// A run of a program with the recorder in it.
#pragma once

#include "checker/programs/record.hpp"
#include "checker/verify/check_command.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::programs {

struct program_options {
  std::string command;   // words of a shell; {} in it becomes the path of a file that does not exist yet
  std::string recorder;  // the shared object
  double seconds = 60;   // it may run for so long
};

// The record of a program that has ended with status 0.
class program_run {
 public:
  // Throws pmlab::error if the program cannot be recorded, fails, or does not end.
  explicit program_run(const program_options& options);
  program_run(const program_run&) = delete;
  program_run& operator=(const program_run&) = delete;
  ~program_run();

  [[nodiscard]] std::uint64_t pool_bytes() const noexcept { return pool_bytes_; }
  // A file with the pool's content when it was mapped first; durable.
  [[nodiscard]] const std::string& base() const noexcept { return base_.path(); }

  struct step {
    const entry* head;
    const std::byte* payload;
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept {
      return {reinterpret_cast<const std::uint64_t*>(payload), head->bytes / 8};
    }
    [[nodiscard]] std::string_view text() const noexcept {
      return {reinterpret_cast<const char*>(payload), head->bytes};
    }
  };
  // Those after the first mapping of the pool, without stacks and objects.
  [[nodiscard]] const std::vector<step>& steps() const noexcept { return steps_; }

  // "file:line (function), by file:line (function)": the innermost call of a stack in the program's own code, and the
  // calls around it, at most `most` of them.
  [[nodiscard]] std::string place_of(std::uint32_t stack, std::size_t most) const;

 private:
  struct object {
    std::uintptr_t begin, end;
    bool is_absolute;
    std::string path;
  };

  void check_program();
  void run(const program_options& options);
  void read_record();

  std::vector<std::string> words_;
  std::string file_;  // file of the program
  verify::scratch_file own_pool_{".pool"};
  verify::scratch_file record_file_{".record"};
  verify::scratch_file base_{".base"};
  verify::scratch_file output_{".output"};
  std::byte* record_ = nullptr;
  std::size_t record_bytes_ = 0;
  std::uint64_t pool_bytes_ = 0;
  std::vector<step> steps_;
  std::map<std::uint32_t, std::span<const std::uint64_t>> stacks_;
  std::vector<object> objects_;
};

}  // namespace pmlab::programs
