#include "microbench/drive/engine.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include "bench/engine/summary.hpp"
#include "microbench/drive/fio.hpp"
#include "microbench/memory/figures.hpp"
#include "microbench/memory/suite_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include <fmt/format.h>

namespace pmlab::drive {
namespace {

constexpr double bytes_per_gib = 1073741824;
constexpr double picoseconds_per_second = 1e12;
constexpr std::uint64_t picoseconds_per_ns = 1000;
constexpr std::uint64_t least_requests = 64;
constexpr std::uint64_t most_times_longer = 10;
constexpr double virtual_seconds = 0.1;
constexpr std::uint64_t most_data_bytes = std::uint64_t{512} << 20;

double cpu_ns_now() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Bytes that no drive compresses.
void fill(blocks::buffer& data, std::uint64_t seed) {
  splitmix64 random(seed);
  for (std::size_t i = 0; i + 8 <= data.size(); i += 8) {
    const std::uint64_t word = random.next();
    std::memcpy(data.data() + i, &word, sizeof word);
  }
}

// The requests of one repetition.
class requests {
 public:
  requests(const drive_case& c, const blocks::geometry& shape, std::uint64_t bytes, std::uint64_t seed)
      : case_(c),
        slot_bytes_((c.bytes + blocks::data_alignment - 1) / blocks::data_alignment * blocks::data_alignment),
        data_(slot_bytes_ * c.depth),
        random_(seed),
        places_(std::min(bytes, shape.bytes()) / c.bytes),
        blocks_(static_cast<std::uint32_t>(c.bytes / shape.block_bytes)),
        next_(random_.below(places_)) {
    if (c.what == access::write) fill(data_, seed);
  }

  // The next one, with the data of a slot.
  [[nodiscard]] blocks::request next(std::uint64_t slot) {
    const std::uint64_t place = case_.where == order::random ? random_.below(places_) : next_;
    if (++next_ == places_) next_ = 0;
    const bool durable = case_.until == durability::durable;
    return {.what = case_.what == access::read ? blocks::operation::read
                    : durable                  ? blocks::operation::write_durable
                                               : blocks::operation::write,
            .count = blocks_,
            .first = place * blocks_,
            .data = data_.data() + slot * slot_bytes_,
            .tag = slot};
  }

 private:
  const drive_case& case_;
  std::uint64_t slot_bytes_;
  blocks::buffer data_;
  random_source random_;
  std::uint64_t places_;
  std::uint32_t blocks_;
  std::uint64_t next_;
};

// Why this device cannot have the case; empty: it can.
std::string refusal(const drive_case& c, const blocks::geometry& shape, std::uint64_t bytes) {
  if (c.bytes % shape.block_bytes != 0)
    return fmt::format("the drive reads and writes at least {} bytes", shape.block_bytes);
  if (c.bytes * c.depth > most_data_bytes) return "its data in flight is more than 512 MiB";
  if (std::min(bytes, shape.bytes()) / c.bytes < 2) return "the device is too small for it";
  return {};
}

}  // namespace

double case_result::value() const { return bench::median(gib_per_s); }

repetition repeat_case(const drive_case& c, target& on, std::uint64_t bytes, std::uint64_t time, std::uint64_t seed) {
  requests next(c, on.device().shape(), bytes, seed);
  blocks::any_device::queue queue(on.device(), c.depth);
  std::vector<std::uint64_t> began(c.depth);
  std::vector<bool> flushes(c.depth);
  std::vector<blocks::request> first;
  for (std::uint64_t slot = 0; slot < c.depth; ++slot) first.push_back(next.next(slot));

  repetition r;
  // Grows no more while requests are timed, as long as there are fewer.
  r.latencies.reserve(std::size_t{1} << 16);
  const std::uint64_t start = on.now();
  const std::uint64_t warm = start + time / 10;
  std::uint64_t begin = 0;  // begin of the time that counts; 0: it is warming up
  std::uint64_t last = start;
  double cpu_begin = 0;
  std::ranges::fill(began, start);
  static_cast<void>(queue.submit(first));
  bool goes_on = true;
  std::array<blocks::completion, 1> done{};
  while (queue.in_flight() > 0) {
    static_cast<void>(queue.reap(done, 1));
    const std::uint64_t now = on.now();
    const std::uint64_t slot = done[0].tag;
    if (!done[0].succeeded())
      throw error(fmt::format("device {} failed a request of case {}: {}", on.device().name(), c.name,
                              blocks::describe(done[0].error)),
                  on.device().failure().empty() ? "check the drive" : on.device().failure());
    if (!goes_on) continue;
    if (c.until == durability::flush && !flushes[slot]) {
      flushes[slot] = true;
      const blocks::request flush{.what = blocks::operation::flush, .tag = slot};
      static_cast<void>(queue.submit({&flush, 1}));
      continue;
    }
    flushes[slot] = false;
    if (begin != 0) {
      ++r.requests;
      r.latencies.push_back(now - began[slot]);
      last = now;
      const bool enough = r.requests >= least_requests || now > begin + time * most_times_longer;
      if (now >= begin + time && enough) {
        r.cpu_ns = cpu_ns_now() - cpu_begin;
        goes_on = false;
        continue;
      }
    } else if (now >= warm) {
      begin = now;
      cpu_begin = cpu_ns_now();
    }
    began[slot] = now;
    const blocks::request another = next.next(slot);
    static_cast<void>(queue.submit({&another, 1}));
  }
  r.time = last - begin;
  return r;
}

namespace {

double rate_of(const repetition& r) {
  return static_cast<double>(r.requests) * picoseconds_per_second / static_cast<double>(r.time);
}

// Writes as the case does until the rate is steady, in rounds of `seconds`.
settling settle(const run_options& options, const drive_case& c, target& on, double seconds) {
  using clock = std::chrono::steady_clock;
  const clock::time_point start = clock::now();
  settling s;
  std::vector<double> rates;
  while (!s.reached && s.seconds < options.settle_seconds) {
    // Places and content of a round are not those of the repetitions.
    const std::uint64_t seed = mix_bits(++s.rounds);
    rates.push_back(
        rate_of(repeat_case(c, on, options.bytes, static_cast<std::uint64_t>(seconds * picoseconds_per_second), seed)));
    s.reached = is_steady(rates);
    s.seconds = std::chrono::duration<double>(clock::now() - start).count();
  }
  return s;
}

// Our repetitions and fio's take turns, so that a slow moment of the machine meets both.
case_result measure(const run_options& options, const suite& s, const drive_case& c, target& on) {
  case_result result;
  result.what = c;
  if (std::string reason = refusal(c, on.device().shape(), options.bytes); !reason.empty()) {
    result.skipped = std::move(reason);
    return result;
  }
  const bool exact = on.virtual_clock();
  const double seconds = exact ? virtual_seconds : s.seconds;
  const bool beside_fio = c.beside_fio && options.fio && !on.path().empty();
  std::vector<double> per_second;
  std::vector<double> cpu;
  std::vector<double> of_fio;
  std::vector<double> over_fio;
  std::vector<std::uint64_t> latencies;
  microbench::steadiness steady;
  const unsigned most = exact ? 1 : s.most_repetitions;
  on.prepare(c);
  // A modelled drive is steady already.
  if (options.settle_seconds > 0 && c.what == access::write && !exact) {
    result.settled = settle(options, c, on, seconds);
    if (!result.settled->reached)
      result.notes.push_back(fmt::format("its rate was not steady after {:.0f} s of writes: give --settle more seconds",
                                         result.settled->seconds));
  }
  for (unsigned i = 0; i < most && !steady.enough; ++i) {
    const repetition r =
        repeat_case(c, on, options.bytes, static_cast<std::uint64_t>(seconds * picoseconds_per_second), i + 1);
    const double rate = rate_of(r);
    per_second.push_back(rate);
    result.gib_per_s.push_back(rate * static_cast<double>(c.bytes) / bytes_per_gib);
    cpu.push_back(r.cpu_ns / static_cast<double>(r.requests));
    latencies.insert(latencies.end(), r.latencies.begin(), r.latencies.end());
    if (beside_fio) {
      of_fio.push_back(run_fio(*options.fio, c, on.path(), options.bytes, seconds));
      over_fio.push_back(rate / of_fio.back());
    }
    steady = microbench::judge(per_second, s.least_repetitions, options.spread_percent);
  }
  result.requests_per_s = bench::median(per_second);
  if (!exact) result.cpu_ns = bench::median(cpu);
  if (beside_fio) {
    result.fio_requests_per_s = bench::median(of_fio);
    result.over_fio = bench::median(over_fio);
  }
  if (c.what == access::write) result.amplification = on.amplification();
  result.latency = microbench::figures_of(latencies);
  for (const std::uint64_t picoseconds : latencies) result.latencies.record(picoseconds / picoseconds_per_ns);
  result.spread_percent = steady.spread_percent;
  result.steady = exact || steady.enough;
  return result;
}

double weight_of(const run_options& options, const suite& s, const drive_case& c) {
  const double settles = c.what == access::write ? options.settle_seconds : 0;
  return settles + s.least_repetitions * (s.seconds + (c.beside_fio && options.fio ? s.seconds + 0.3 : 0.0));
}

}  // namespace

suite_report run_suite(const run_options& options, const suite& s, target& on, bench::progress& shown) {
  suite_report report;
  microbench::run_cases(
      report, s, options.device.text(), shown, [&](const drive_case& c) { return weight_of(options, s, c); },
      [&](const drive_case& c) { return measure(options, s, c, on); });
  report.remarks = on.remarks();
  return report;
}

}  // namespace pmlab::drive
