#include "bench/stores/engine.hpp"
#include "bench/stores/store_run.hpp"
#include "bench/stores/worker.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::uint64_t steady_writes_per_mebibyte = 40;
constexpr std::uint64_t most_steady_volumes = 4;
constexpr unsigned steady_depth = 32;
constexpr std::uint64_t counted_block = 4096;
// A modelled drive takes writes faster than it will until its buffer is full, and then in bursts. So many times it is
// written before a case and, at least, in it.
constexpr std::uint64_t buffers_before_a_case = 2;
constexpr std::uint64_t buffers_of_a_case = 4;

// Kinds of steps that are not measured. Their weights are blocks.
constexpr std::string_view filling = "filling";
constexpr std::string_view steadying = "steady state";
constexpr double supposed_blocks_per_s = 200'000;
// Reading large pieces is so much faster than writing small ones, for each block.
constexpr std::uint64_t blocks_of_a_check = 8;

class volume_run final : public store_run<run_options, contestant, case_result> {
 public:
  using store_run::store_run;

 private:
  [[nodiscard]] std::pair<double, std::uint64_t> size_of(const bench_case& c) const override {
    const double blocks = static_cast<double>(options_.operations) * static_cast<double>(c.size) / counted_block;
    return {by_time() ? options_.seconds : blocks, options_.operations};
  }
  [[nodiscard]] double weight_of_blocks(std::uint64_t blocks) const {
    return weight_of_work(blocks, supposed_blocks_per_s);
  }

  void prepare(contestant& s, const bench_case& c) override {
    if (c.what.kind == phase_kind::fill) {
      if (!announces()) s.make();
      s.state = {};
      return;
    }
    if (!s.state.is_filled) fill(s, weight_of_blocks(s.ledger().blocks()));
    if (overwrites(c) && s.state.steady_for != c.size) make_steady(s, c);
    if (announces()) return;
    // What cases before it left in the drive is not work of this one.
    if (bytes_written_by(c) > 0)
      s.device().precondition();
    else
      s.device().come_to_rest();
  }
  void restore(contestant& s, const bench_case& c) override {
    if (!each_place_once(c)) return;
    fill(s, 0);
    s.state.steady_for = 0;
  }
  void fill(contestant& s, double weight) {
    step(s, filling, weight, "filling the volume", s.ledger().blocks(), [&] { complete_fill(s, clock_, shown_); });
    s.state.is_filled = true;
  }

  [[nodiscard]] static bool overwrites(const bench_case& c) noexcept {
    return c.what.kind == phase_kind::overwrite || (c.what.kind == phase_kind::mix && c.what.read_percent < 100);
  }
  [[nodiscard]] static std::uint64_t steady_writes(const bench_case& c, const contestant& s) {
    const std::uint64_t volume = s.subject().bytes();
    const std::uint64_t places = volume / c.size;
    const std::uint64_t wanted = (volume + mebibyte - 1) / mebibyte * steady_writes_per_mebibyte;
    return std::clamp(wanted, places, places * most_steady_volumes);
  }
  // Overwrites until the rings of all chunks went into their maps more than once, and the drive's reserve is in use.
  void make_steady(contestant& s, const bench_case& c) {
    const std::uint64_t writes_made = steady_writes(c, s);
    step(s, steadying, weight_of_blocks(writes_made * c.size / counted_block),
         fmt::format("overwriting until it is steady for {} bytes", c.size), writes_made, [&] {
           const bench_case steady{
               {phase_kind::overwrite, "steady state", 0, false}, order::random, c.size, steady_depth};
           // What writes of other sizes left is not work of this one.
           s.subject().settle();
           static_cast<void>(run_threads(s, steady, {.operations = writes_made}, next_seed(s, text_of(steady))));
         });
    s.state.steady_for = c.size;
  }

  // A fill or discard meets each place once: a warm-up would take places from it.
  [[nodiscard]] bool warms_up(const bench_case& c) const override { return !each_place_once(c); }
  [[nodiscard]] std::uint64_t least_warm_up(const contestant& s, const bench_case& c) const override {
    return writes_of(buffers_before_a_case, s, c);
  }
  // The operations that write so many buffers of the drive; 0: they write nothing, or it is not modelled.
  [[nodiscard]] static std::uint64_t writes_of(std::uint64_t buffers, const contestant& s, const bench_case& c) {
    const double of_an_operation = bytes_written_by(c);
    if (of_an_operation <= 0) return 0;
    return static_cast<std::uint64_t>(static_cast<double>(buffers * s.device().buffer_bytes()) / of_an_operation);
  }
  // By an operation, in the mean; 0: it writes nothing, or to a drive as new.
  [[nodiscard]] static double bytes_written_by(const bench_case& c) noexcept {
    const auto size = static_cast<double>(c.size);
    switch (c.what.kind) {
      case phase_kind::overwrite: return size;
      case phase_kind::mix: return size * (100 - c.what.read_percent) / 100;
      case phase_kind::pages: return (size + counted_block) / 4;  // a page and a record of the log, and two reads
      case phase_kind::fill:
      case phase_kind::read:
      case phase_kind::discard:
      case phase_kind::open:
      case phase_kind::complete: break;
    }
    return 0;
  }
  [[nodiscard]] case_length length_of(contestant& s, const bench_case& c) const override {
    case_length usual = usual_length(each_place_once(c) ? s.subject().bytes() / c.size : 0);
    if (usual.operations != 0) usual.operations = std::max(usual.operations, writes_of(buffers_of_a_case, s, c));
    return usual;
  }
  [[nodiscard]] static bool each_place_once(const bench_case& c) noexcept {
    return c.what.kind == phase_kind::fill || c.what.kind == phase_kind::discard;
  }

  void complete(case_result& r, contestant& s) override {
    // One drive has its ratio without rounding.
    r.flash_per_written = r.opening ? std::nullopt : s.device().amplification();
    if (r.opening) r.medium = std::nullopt;
    if (r.what.what.kind != phase_kind::mix && r.what.what.kind != phase_kind::pages)
      r.read_latency = r.write_latency = std::nullopt;  // that of all operations says it
  }

  void check_at_end(contestant& s) override {
    check_with(s, weight_of_blocks(s.ledger().blocks() / blocks_of_a_check), 0, [&] {
      worker_sums sum = check_all(s, clock_, shown_);
      tell_wrong(sum);
      return sum;
    });
  }
};

}  // namespace

run_report run_cases(const run_options& options, std::vector<contestant>& stores, const run_clock& clock,
                     bench::progress& shown) {
  for (contestant& s : stores)
    if (!s.is_made()) s.make();
  return volume_run(options, stores, clock, shown).all();
}

}  // namespace pmlab::store_bench
