#include "bench/workload/trace_binary.hpp"
#include <pmlab/base/error.hpp>
#include "bench/input/text_encoding.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace pmlab::workload::detail {
namespace {

// The number at `place`, the least significant byte first, as on this machine.
template <class Number>
Number number_at(std::string_view bytes, std::size_t place) noexcept {
  Number number = 0;
  std::memcpy(&number, bytes.data() + place, sizeof number);
  return number;
}

// Bytes of a file that is read as it lies there; nothing: they are not known before its end.
std::optional<std::uint64_t> known_size(const input::input_bytes& bytes) {
  std::error_code unknown;
  if (bytes.is_compressed() || !std::filesystem::is_regular_file(bytes.path(), unknown)) return std::nullopt;
  const std::uint64_t size = std::filesystem::file_size(bytes.path(), unknown);
  return unknown ? std::nullopt : std::optional(size);
}

// One request: time (4 bytes), object (8), size (4), and the number of the next request for that object (8), or none.
struct oracle_request {
  static constexpr std::size_t bytes = 24;
  static constexpr std::size_t object_place = 4;
  explicit oracle_request(std::string_view record)
      : time(number_at<std::uint32_t>(record, 0)), next(number_at<std::int64_t>(record, 16)) {}
  std::uint32_t time;
  std::int64_t next;
};

constexpr std::size_t count_bytes = sizeof(std::uint64_t);
// So few numbers may ascend, or be like requests, by chance.
constexpr std::size_t few = 16;

template <class Number>
bool ascends(std::string_view keys) noexcept {
  for (std::size_t i = sizeof(Number); i + sizeof(Number) <= keys.size(); i += sizeof(Number))
    if (number_at<Number>(keys, i) < number_at<Number>(keys, i - sizeof(Number))) return false;
  return true;
}

// Whether the keys ascend, as SOSD's do, or are too few to tell.
bool has_sorted_keys(std::string_view start) noexcept {
  const std::string_view keys = start.substr(std::min(start.size(), count_bytes));
  return ascends<std::uint32_t>(keys) || ascends<std::uint64_t>(keys);
}

// Times do not go back, and the next request is a later one, of the same object where it can be seen. Few requests need
// one such, or no next one at all; many must not be keys that ascend.
bool is_oracle_general(std::string_view start, std::optional<std::uint64_t> size) {
  constexpr std::uint32_t most_time = 10U * 366 * 86'400;
  constexpr std::int64_t most_requests = std::int64_t{1} << 40;
  const std::size_t records = start.size() / oracle_request::bytes;
  if (records == 0 || (size && *size % oracle_request::bytes != 0)) return false;
  const auto record = [start](std::size_t i) { return start.substr(i * oracle_request::bytes, oracle_request::bytes); };
  const auto object = [&](std::size_t i) { return number_at<std::uint64_t>(record(i), oracle_request::object_place); };
  std::uint32_t time = 0;
  bool has_nexts = false;
  bool has_next_of_same = false;
  for (std::size_t i = 0; i < records; ++i) {
    const oracle_request r(record(i));
    const bool has_next = r.next != -1 && r.next != std::numeric_limits<std::int64_t>::max();
    if (r.time < time || (i > 0 && r.time - time > most_time)) return false;
    if (has_next && (r.next <= static_cast<std::int64_t>(i) || r.next > most_requests)) return false;
    has_nexts |= has_next;
    // Requests are numbered from 0 or from 1.
    for (const std::int64_t next : {r.next, r.next - 1})
      has_next_of_same |= has_next && next > static_cast<std::int64_t>(i) &&
                          next < static_cast<std::int64_t>(records) &&
                          object(static_cast<std::size_t>(next)) == object(i);
    time = r.time;
  }
  if (has_next_of_same || !has_nexts) return true;
  return records >= few && !has_sorted_keys(start);
}

// By the size, if it is known and right; otherwise the keys ascend, as SOSD's do: then the file is cut off, or its
// first bytes are damaged, and reading it refuses it.
std::optional<trace_format> sosd_format(std::string_view start, std::optional<std::uint64_t> size) {
  constexpr std::uint64_t most_keys = std::uint64_t{1} << 40;
  if (start.size() <= count_bytes) return std::nullopt;
  const auto count = number_at<std::uint64_t>(start, 0);
  if (count == 0) return std::nullopt;
  const std::string_view keys = start.substr(count_bytes);
  if (size && count <= most_keys) {
    if (*size == count_bytes + count * 8) return trace_format::sosd_uint64;
    if (*size == count_bytes + count * 4) return trace_format::sosd_uint32;
  }
  if (is_oracle_general(start, size)) return std::nullopt;
  // A number beyond all files is no number of keys, unless many follow that ascend.
  constexpr std::size_t key_bytes = sizeof(std::uint64_t);
  if (keys.size() < key_bytes * (count > most_keys ? few : 2)) return std::nullopt;
  if (count > most_keys && keys.ends_with(keys.substr(0, key_bytes))) return std::nullopt;
  // Numbers of 8 bytes that ascend do not as twice as many of 4, unless all are small; those of 4 do as half as many of
  // 8.
  if (ascends<std::uint32_t>(keys)) return trace_format::sosd_uint32;
  if (ascends<std::uint64_t>(keys)) return trace_format::sosd_uint64;
  return std::nullopt;
}

// Calls `each` with the records of `record_bytes` bytes that are left in the file. Returns the bytes of a last one that
// is not whole.
std::size_t for_each_record(input::input_bytes& bytes, std::size_t record_bytes,
                            const std::function<void(std::string_view)>& each) {
  std::vector<char> buffer(record_bytes * (std::size_t{64} << 10));
  std::size_t filled = 0;
  while (true) {
    const std::size_t count = bytes.read(buffer.data() + filled, buffer.size() - filled);
    if (count == 0) return filled;
    filled += count;
    const std::size_t whole = filled / record_bytes * record_bytes;
    for (std::size_t i = 0; i < whole; i += record_bytes) each({buffer.data() + i, record_bytes});
    std::memmove(buffer.data(), buffer.data() + whole, filled - whole);
    filled -= whole;
  }
}

void read_oracle_general(input::input_bytes& bytes, const std::function<void(std::uint64_t)>& key) {
  std::uint64_t requests = 0;
  const std::size_t left = for_each_record(bytes, oracle_request::bytes, [&](std::string_view record) {
    ++requests;
    key(number_at<std::uint64_t>(record, oracle_request::object_place));
  });
  if (left != 0)
    throw error(bytes.name() + " ends inside request " + std::to_string(requests + 1),
                "copy it again, or name another --trace-format: requests of oracleGeneral have 24 bytes each");
}

template <class Number>
void read_sosd(input::input_bytes& bytes, const std::function<void(std::uint64_t)>& key) {
  char first[count_bytes];
  std::size_t have = 0;
  while (have < count_bytes) {
    const std::size_t count = bytes.read(first + have, count_bytes - have);
    if (count == 0) throw error(bytes.name() + " has no number of keys", "copy it again: its first 8 bytes are that");
    have += count;
  }
  const auto count = number_at<std::uint64_t>({first, count_bytes}, 0);
  const auto refuse = [&](const std::string& has) {
    throw error(bytes.name() + " says that it has " + std::to_string(count) + " keys, and has " + has,
                "copy it again: it was cut off, or its first 8 bytes are not their number; or give --trace-format "
                "sosd-uint32 or sosd-uint64: the keys have " +
                    std::to_string(sizeof(Number)) + " bytes here");
  };
  const auto counted = [](std::uint64_t keys, std::size_t left) {
    return std::to_string(keys) + (left != 0 ? " and a part of one" : "");
  };
  // Known before keys are taken for the load of a file that is not whole.
  if (const auto size = known_size(bytes); size && *size >= count_bytes) {
    const std::uint64_t keys = (*size - count_bytes) / sizeof(Number);
    const auto left = static_cast<std::size_t>((*size - count_bytes) % sizeof(Number));
    if (keys != count || left != 0) refuse(counted(keys, left));
  }
  std::uint64_t keys = 0;
  const std::size_t left = for_each_record(bytes, sizeof(Number), [&](std::string_view record) {
    if (++keys > count) refuse("more");
    key(number_at<Number>(record, 0));
  });
  if (keys != count || left != 0) refuse(counted(keys, left));
}

}  // namespace

std::optional<trace_format> binary_format_of(const input::input_bytes& bytes) {
  const std::string_view start = bytes.start();
  if (!input::is_binary(start)) return std::nullopt;
  const std::optional<std::uint64_t> size = known_size(bytes);
  if (const auto sosd = sosd_format(start, size)) return sosd;
  if (is_oracle_general(start, size)) return trace_format::oracle_general;
  return std::nullopt;
}

void read_binary(trace_format format, input::input_bytes& bytes, const std::function<void(std::uint64_t)>& key) {
  if (format == trace_format::oracle_general) return read_oracle_general(bytes, key);
  if (format == trace_format::sosd_uint32) return read_sosd<std::uint32_t>(bytes, key);
  read_sosd<std::uint64_t>(bytes, key);
}

}  // namespace pmlab::workload::detail
