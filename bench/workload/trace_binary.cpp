#include "bench/workload/trace_binary.hpp"
#include <pmlab/base/error.hpp>
#include "bench/input/text_encoding.hpp"

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

// One request: time (4 bytes), object (8), size (4), and the number of the next request for that object (8), or none.
struct oracle_request {
  static constexpr std::size_t bytes = 24;
  static constexpr std::size_t object_place = 4;
  explicit oracle_request(std::string_view record)
      : time(number_at<std::uint32_t>(record, 0)), next(number_at<std::int64_t>(record, 16)) {}
  std::uint32_t time;
  std::int64_t next;
};

// Times do not go back, and the next request is a later one.
bool is_oracle_general(std::string_view start, std::optional<std::uint64_t> size) {
  constexpr std::uint32_t most_time = 10U * 366 * 86'400;
  constexpr std::int64_t most_requests = std::int64_t{1} << 40;
  const std::size_t records = start.size() / oracle_request::bytes;
  if (records == 0 || (size && *size % oracle_request::bytes != 0)) return false;
  std::uint32_t time = 0;
  for (std::size_t i = 0; i < records; ++i) {
    const oracle_request r(start.substr(i * oracle_request::bytes, oracle_request::bytes));
    const bool has_next = r.next != -1 && r.next != std::numeric_limits<std::int64_t>::max();
    if (r.time < time || (i > 0 && r.time - time > most_time)) return false;
    if (has_next && (r.next <= static_cast<std::int64_t>(i) || r.next > most_requests)) return false;
    time = r.time;
  }
  return true;
}

constexpr std::size_t count_bytes = sizeof(std::uint64_t);

template <class Number>
bool ascends(std::string_view keys) noexcept {
  for (std::size_t i = sizeof(Number); i + sizeof(Number) <= keys.size(); i += sizeof(Number))
    if (number_at<Number>(keys, i) < number_at<Number>(keys, i - sizeof(Number))) return false;
  return true;
}

// By the size, if it is known; otherwise the keys ascend, as SOSD's do.
std::optional<trace_format> sosd_format(std::string_view start, std::optional<std::uint64_t> size) {
  constexpr std::uint64_t most_keys = std::uint64_t{1} << 40;
  if (start.size() <= count_bytes) return std::nullopt;
  const auto count = number_at<std::uint64_t>(start, 0);
  if (count == 0 || count > most_keys) return std::nullopt;
  const std::string_view keys = start.substr(count_bytes);
  if (size) {
    if (*size == count_bytes + count * 8) return trace_format::sosd_uint64;
    if (*size == count_bytes + count * 4) return trace_format::sosd_uint32;
    return std::nullopt;
  }
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
  std::uint64_t keys = 0;
  const std::size_t left = for_each_record(bytes, sizeof(Number), [&](std::string_view record) {
    ++keys;
    key(number_at<Number>(record, 0));
  });
  if (keys != count || left != 0)
    throw error(bytes.name() + " says that it has " + std::to_string(count) + " keys, and has " + std::to_string(keys) +
                    (left != 0 ? " and a part of one" : ""),
                "copy it again, or give --trace-format sosd-uint32 or sosd-uint64: the keys have " +
                    std::to_string(sizeof(Number)) + " bytes here");
}

}  // namespace

std::optional<trace_format> binary_format_of(const input::input_bytes& bytes) {
  const std::string_view start = bytes.start();
  if (!input::is_binary(start)) return std::nullopt;
  std::error_code unknown;
  std::optional<std::uint64_t> size;
  if (!bytes.is_compressed() && std::filesystem::is_regular_file(bytes.path(), unknown))
    size = std::filesystem::file_size(bytes.path(), unknown);
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
