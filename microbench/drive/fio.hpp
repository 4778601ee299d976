// fio measures the same case on the same file, for comparison.
#pragma once

#include "microbench/drive/case.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::drive {

// The arguments that make fio measure a case for `seconds` on the first `bytes` of the file `path`, with direct I/O, by
// fio's `engine`. The output is JSON in the file `output`.
[[nodiscard]] std::vector<std::string> words_for_fio(const drive_case& c, const std::string& path, std::uint64_t bytes,
                                                     double seconds, const std::string& output,
                                                     const std::string& engine);

// Requests a second, from fio's JSON. Throws pmlab::error: it names none.
[[nodiscard]] double requests_per_s(const std::string& text, access what);

// Runs fio through io_uring, or through libaio where that fails; returns requests a second. Throws pmlab::error with
// fio's reasons: it failed by both.
[[nodiscard]] double run_fio(const std::string& fio, const drive_case& c, const std::string& path, std::uint64_t bytes,
                             double seconds);

}  // namespace pmlab::drive
