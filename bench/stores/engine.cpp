#include "bench/stores/engine.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/run_frame.hpp"
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
constexpr std::uint64_t block = 4096;

// Kinds of steps that are not measured. Their weights are blocks; beside cases that end by time they are seconds, at a
// speed that is supposed until the first of them is seen.
constexpr std::string_view filling = "filling";
constexpr std::string_view steadying = "steady state";
constexpr std::string_view checking = "checking";
constexpr double supposed_blocks_per_s = 200'000;
// Reading large pieces is so much faster than writing small ones, for each block.
constexpr std::uint64_t blocks_of_a_check = 8;

class run : run_frame<case_result> {
 public:
  run(const run_options& options, std::vector<contestant>& stores, const run_clock& clock, bench::progress& shown)
      : run_frame(clock, shown, options), options_(options), stores_(stores) {}

  run_report all() {
    for (contestant& s : stores_)
      if (!s.is_made()) s.make();
    announce();
    return run_all(
        [&] {
          for (const bench_case& c : options_.cases)
            for (unsigned repetition = 1; repetition <= options_.repetitions; ++repetition)
              for (contestant& s : stores_) measure(s, c, repetition);
          for (contestant& s : stores_) check_at_end(s);
        },
        [&] {
          for (contestant& s : stores_) {
            if (!s.is_made()) continue;
            remark_once(s.device().remarks());
            remark_once(s.subject().remarks());
          }
        });
  }

 private:
  // ---- steps and their weights, for the time that is left

  [[nodiscard]] double weight_of(const bench_case& c) const {
    if (by_time()) return options_.seconds;
    return static_cast<double>(options_.operations) * static_cast<double>(c.size) / 4096;
  }
  // The weight of so many blocks of unmeasured work.
  [[nodiscard]] double weight_of_blocks(std::uint64_t blocks) const {
    return static_cast<double>(blocks) / (by_time() ? supposed_blocks_per_s : 1);
  }

  // The steps of one store, as `measure` will make them.
  void announce(contestant& s) {
    const std::uint64_t blocks = s.blocks().blocks();
    const std::string& store = s.labels().store;
    bool filled = false;
    std::uint64_t steady_for = 0;
    for (std::size_t i = 0; i < options_.cases.size(); ++i) {
      const bench_case& c = options_.cases[i];
      const bool fills = c.what.kind == phase_kind::fill;
      if (!filled && !fills) shown_.expect(store, filling, weight_of_blocks(blocks));
      filled = true;
      if (overwrites(c) && steady_for != c.size) {
        shown_.expect(store, steadying, weight_of_blocks(steady_writes(c, s) * c.size / block));
        steady_for = c.size;
      }
      for (unsigned r = 0; r < options_.repetitions; ++r)
        shown_.expect(store, names_[i], weight_of(c), by_time() && clock_.kind() == std::string_view("real"));
      if (fills || c.what.kind == phase_kind::discard) steady_for = 0;
    }
    shown_.expect(store, checking, weight_of_blocks(blocks / blocks_of_a_check));
  }

  void announce() {
    shown_.pass(
        fmt::format("{} cases of {} stores, {} times", options_.cases.size(), stores_.size(), options_.repetitions));
    names_.reserve(options_.cases.size());
    for (const bench_case& c : options_.cases) names_.push_back(text_of(c));
    for (contestant& s : stores_) announce(s);
  }

  // ---- states

  void fill(contestant& s) {
    if (s.is_filled()) return;
    step(s.labels().store, filling, weight_of_blocks(s.blocks().blocks()),
         fmt::format("{}: filling the volume", s.labels().store), s.blocks().blocks(),
         [&] { complete_fill(s, shown_); });
  }

  [[nodiscard]] static bool overwrites(const bench_case& c) noexcept {
    return c.what.kind == phase_kind::overwrite || (c.what.kind == phase_kind::mix && c.what.read_percent < 100);
  }
  [[nodiscard]] static std::uint64_t steady_writes(const bench_case& c, contestant& s) {
    const std::uint64_t volume = s.subject().bytes();
    const std::uint64_t places = volume / c.size;
    const std::uint64_t wanted = (volume + mebibyte - 1) / mebibyte * steady_writes_per_mebibyte;
    return std::clamp(wanted, places, places * most_steady_volumes);
  }

  // Overwrites until the rings of all chunks went into their maps more than once, and the drive's reserve is in use.
  void make_steady(contestant& s, const bench_case& c) {
    if (!overwrites(c) || s.steady_for() == c.size) return;
    const std::uint64_t writes_made = steady_writes(c, s);
    step(s.labels().store, steadying, weight_of_blocks(writes_made * c.size / block),
         fmt::format("{}: overwriting until it is steady for {} bytes", s.labels().store, c.size), writes_made, [&] {
           bench_case steady{{phase_kind::overwrite, "steady state", 0, false}, order::random, c.size, steady_depth};
           // What writes of other sizes left is not work of this one.
           s.subject().settle();
           s.device().precondition();
           static_cast<void>(run_threads(s, steady, writes_made, 0));
         });
    s.set_steady_for(c.size);
  }

  // ---- measuring

  [[nodiscard]] worker_sums run_threads(contestant& s, const bench_case& c, std::uint64_t operations,
                                        std::uint64_t time) {
    return share_case(c, operations, time,
                      [&](const worker_task& task) { return run_worker(s, task, clock_, shown_); });
  }

  void measure(contestant& s, const bench_case& c, unsigned repetition) {
    const bool fills = c.what.kind == phase_kind::fill;
    if (fills) s.make();
    if (!fills) {
      fill(s);
      make_steady(s, c);
    }
    const std::string what =
        fmt::format("{}: {}, {} of {}", s.labels().store, text_of(c), repetition, options_.repetitions);
    step(s.labels().store, names_[index_of(c)], weight_of(c), what, options_.operations, [&] {
      if (c.what.kind == phase_kind::open)
        measure_opening(s, c, repetition);
      else
        measure_operations(s, c, repetition);
    });
    if (c.what.kind == phase_kind::fill || c.what.kind == phase_kind::discard) fill_again(s);
  }
  [[nodiscard]] std::size_t index_of(const bench_case& c) const {
    return static_cast<std::size_t>(&c - options_.cases.data());
  }
  void fill_again(contestant& s) {
    step(s.labels().store, filling, 0, fmt::format("{}: filling the volume", s.labels().store), s.blocks().blocks(),
         [&] { complete_fill(s, shown_); });
    s.set_steady_for(0);
  }

  void measure_operations(contestant& s, const bench_case& c, unsigned repetition) {
    const auto time = static_cast<std::uint64_t>(options_.seconds * picoseconds_per_second);
    const std::uint64_t most = most_operations(c, s.subject().bytes());
    std::uint64_t operations = options_.operations;
    if (most != 0 && operations != 0) operations = std::min(most, operations);
    if (most == 0)
      static_cast<void>(operations == 0 ? run_threads(s, c, 0, time / warm_up_share)
                                        : run_threads(s, c, operations / warm_up_share + 1, 0));
    case_result r = begin_result(s.labels(), c, false, repetition);
    const std::vector<store_statistic> before = s.subject().statistics();
    s.device().reset_counts();
    s.subject().reset_counts();
    const std::uint64_t waited = s.device().waiting_cpu_ns();
    const std::uint64_t cpu = clock_.cpu_ns();
    const worker_sums sum = run_threads(s, c, operations, operations == 0 ? time : 0);
    const std::uint64_t cpu_used = clock_.cpu_ns() - cpu;
    const std::uint64_t not_the_store = s.device().waiting_cpu_ns() - waited + sum.own_ns;
    r.take_amounts(sum);
    r.take_times(sum);
    if (c.what.kind != phase_kind::mix && c.what.kind != phase_kind::pages)
      r.read_latency = r.write_latency = std::nullopt;  // that of all operations says it
    r.cpu_ns = cpu_per_operation(cpu_used, not_the_store, sum.operations);
    r.device = s.device().counts();
    r.device_amplification = s.device().amplification();
    r.medium = s.subject().counts();
    r.space = s.subject().space();
    r.statistics = grown(before, s.subject().statistics());
    report_.results.push_back(std::move(r));
  }

  void measure_opening(contestant& s, const bench_case& c, unsigned repetition) {
    if (!s.subject().can_reopen()) {
      remark_once(fmt::format("{} is not measured in phase open: there is nothing to open", s.labels().store));
      return;
    }
    s.subject().settle();
    s.subject().close();
    case_result r = begin_result(s.labels(), c, true, repetition);
    s.device().reset_counts();
    const std::uint64_t began = clock_.now();
    s.subject().open();
    const worker_sums read = run_worker(s, {.what = c, .operations = 1, .seed = next_seed()}, clock_, shown_);
    const std::uint64_t answered = read.ended;
    s.subject().wait_until_complete();
    const std::uint64_t complete = clock_.now();
    r.opening =
        opening_times{static_cast<double>(answered - began) / 1000, static_cast<double>(complete - began) / 1000};
    r.take_amounts(read);
    r.time_ns = r.opening->complete_ns;
    r.device = s.device().counts();
    r.space = s.subject().space();
    tell_wrong(read);
    report_.results.push_back(std::move(r));
  }

  void check_at_end(contestant& s) {
    if (!s.is_made()) return;
    step(s.labels().store, checking, weight_of_blocks(s.blocks().blocks() / blocks_of_a_check),
         fmt::format("{}: reading all of it once more", s.labels().store), 0, [&] {
           const worker_sums sum = check_all(s, clock_, shown_);
           report_.at_end.push_back({s.labels().store, sum.verified, sum.wrong});
           tell_wrong(sum);
         });
  }

  const run_options& options_;
  std::vector<contestant>& stores_;
  std::vector<std::string> names_;
};

}  // namespace

std::optional<double> case_result::host_amplification() const {
  if (user_bytes == 0) return std::nullopt;
  return static_cast<double>(written_bytes(device)) / static_cast<double>(user_bytes);
}

run_report run_cases(const run_options& options, std::vector<contestant>& stores, const run_clock& clock,
                     bench::progress& shown) {
  return run(options, stores, clock, shown).all();
}

}  // namespace pmlab::store_bench
