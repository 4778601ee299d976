// One operation of a workload, as a generator makes it or a trace records it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pmlab::workload {

enum class operation_kind : std::uint8_t { read, insert, update, erase, scan, read_modify_write };

inline constexpr std::size_t operation_kinds = 6;

[[nodiscard]] constexpr std::string_view to_string(operation_kind kind) noexcept {
  switch (kind) {
    case operation_kind::read: return "read";
    case operation_kind::insert: return "insert";
    case operation_kind::update: return "update";
    case operation_kind::erase: return "erase";
    case operation_kind::scan: return "scan";
    case operation_kind::read_modify_write: return "read-modify-write";
  }
  return "?";
}

struct operation {
  std::uint64_t key = 0;
  std::uint64_t value = 0;   // insert, update, read-modify-write: the new value
  std::uint32_t length = 0;  // scan: requested entries
  operation_kind kind = operation_kind::read;
};

}  // namespace pmlab::workload
