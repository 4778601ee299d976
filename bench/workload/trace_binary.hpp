// Traces and key files that are no texts: libCacheSim's oracleGeneral, and SOSD's keys.
#pragma once

#include "bench/input/input_bytes.hpp"
#include "bench/workload/trace_format.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace pmlab::workload::detail {

// The binary format of these bytes, by their start and, if the file is a plain one, by its size; nothing: it is none.
[[nodiscard]] std::optional<trace_format> binary_format_of(const input::input_bytes& bytes);

// Calls `key` with the object of each request of an oracleGeneral trace, or with each key of a SOSD file, in the order
// of the file. REQUIRES: `format` is one of those. Throws pmlab::error: the file ends inside a record, has another
// number of keys than it says, or cannot be read.
void read_binary(trace_format format, input::input_bytes& bytes, const std::function<void(std::uint64_t)>& key);

}  // namespace pmlab::workload::detail
