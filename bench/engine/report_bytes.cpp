// A report as bytes: numbers as they lie in memory, the length of a text or of a list before it.
#include "bench/engine/report_bytes.hpp"

#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

namespace pmlab::bench {
namespace {

// `with` each member, in the same order in both directions. A member that is added and not named here does not compile.
template <class Result, class With>
void each_part_of_result(Result& r, With&& with) {
  auto& [index, medium, threads, phase, repeat, operations, seconds, throughput, latency, accesses, persists,
         media_bytes, persistence, measured_under, space, entries, restart, layer, wrong, cpu_cache_bytes, intervals,
         distribution, cpu, invalid] = r;
  with(index, medium, threads, phase, repeat, operations, seconds, throughput, latency, accesses, persists, media_bytes,
       persistence, measured_under, space, entries, restart, layer, wrong, cpu_cache_bytes, intervals, distribution,
       cpu, invalid);
}
template <class Skipped, class With>
void each_part_of_skipped(Skipped& s, With&& with) {
  auto& [index, threads, phase, reason] = s;
  with(index, threads, phase, reason);
}
template <class Report, class With>
void each_part_of_report(Report& r, With&& with) {
  auto& [results, skipped, clock, remarks, first_wrong, failure] = r;
  with(results, skipped, clock, remarks, first_wrong, failure);
}

class writer {
 public:
  std::string bytes;

  template <class... Parts>
  void operator()(const Parts&... parts) {
    (write(parts), ...);
  }

 private:
  template <class Number>
  void write(const Number& value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void write(const std::string& text) {
    write(text.size());
    bytes += text;
  }
  void write(const std::optional<std::string>& text) {
    write(text.has_value());
    if (text) write(*text);
  }
  void write(const phase_result& r) { each_part_of_result(r, *this); }
  void write(const skipped_phase& s) { each_part_of_skipped(s, *this); }
  template <class Item>
  void write(const std::vector<Item>& items) {
    write(items.size());
    for (const Item& item : items) write(item);
  }
};

class reader {
 public:
  explicit reader(std::string_view bytes) : left_(bytes) {}

  template <class... Parts>
  void operator()(Parts&... parts) {
    (read(parts), ...);
  }

 private:
  template <class Number>
  void read(Number& value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    std::memcpy(static_cast<void*>(&value), left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
  }
  void read(std::string& text) {
    std::size_t size = 0;
    read(size);
    text = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  void read(std::optional<std::string>& text) {
    bool is_there = false;
    read(is_there);
    if (is_there) read(text.emplace());
  }
  void read(phase_result& r) { each_part_of_result(r, *this); }
  void read(skipped_phase& s) { each_part_of_skipped(s, *this); }
  template <class Item>
  void read(std::vector<Item>& items) {
    std::size_t count = 0;
    read(count);
    items.resize(count);
    for (Item& item : items) read(item);
  }

  std::string_view left_;
};

}  // namespace

std::string bytes_of(const bench_report& report) {
  writer to;
  each_part_of_report(report, to);
  return std::move(to.bytes);
}

bench_report report_of(std::string_view bytes) {
  bench_report report;
  each_part_of_report(report, reader(bytes));
  return report;
}

}  // namespace pmlab::bench
