#include "bench/workload/generator.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include "bench/workload/keys.hpp"
#include "bench/workload/kind_chooser.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace pmlab::workload {

namespace {

void check_thread(std::uint32_t thread, std::uint32_t threads) {
  if (thread >= threads) throw std::invalid_argument("workload: the thread's number must be below that of threads");
}

// The first of the `total` things that belongs to `thread`, where each thread has a run of neighbours.
[[nodiscard]] std::uint64_t first_of(std::uint64_t total, std::uint32_t thread, std::uint32_t threads) noexcept {
  return total / threads * thread + std::min<std::uint64_t>(thread, total % threads);
}

}  // namespace

std::vector<operation> generate(const generator_options& options) {
  check_thread(options.thread, options.threads);
  const mix& shares = options.operations_mix;
  const double insert_share = shares[operation_kind::insert];
  if (options.records == 0 && options.operations > 0 && insert_share < 1)
    throw error("workload '" + shares.name + "' needs records to work on, and none are loaded", "load at least one");
  if (options.max_scan_length == 0 && shares[operation_kind::scan] > 0)
    throw error("workload '" + shares.name + "' scans, and the longest scan is 0 entries", "allow at least 1");

  const std::uint64_t count = share_of(options.operations, options.thread, options.threads);
  const auto expected_inserts = static_cast<std::uint64_t>(std::ceil(static_cast<double>(count) * insert_share));
  random_source random(options.seed, options.thread);
  const kind_chooser choose(shares);
  sampler draw(options.keys, std::max<std::uint64_t>(options.records + expected_inserts, 1),
               first_of(options.records, options.thread, options.threads));

  // The thread numbers the records that it knows: the loaded ones first, then its own.
  std::uint64_t known = options.records;
  const auto index_at = [&](std::uint64_t number) {
    const std::uint64_t own = number - options.records;
    return options.first +
           (number < options.records ? number : options.records + own * options.threads + options.thread);
  };

  std::vector<operation> result(count);
  std::uint64_t sequence = 1 + options.thread;
  for (operation& made : result) {
    made.kind = choose(random);
    made.key = key_of(index_at(made.kind == operation_kind::insert ? known++ : draw(random, known)));
    if (made.kind == operation_kind::scan)
      made.length = 1 + static_cast<std::uint32_t>(random.below(options.max_scan_length));
    else if (made.kind != operation_kind::read && made.kind != operation_kind::erase)
      made.value = value_of(made.key, sequence);
    sequence += options.threads;
  }
  return result;
}

std::vector<operation> generate_load(std::uint64_t records, std::uint32_t thread, std::uint32_t threads) {
  check_thread(thread, threads);
  std::vector<operation> result(share_of(records, thread, threads));
  std::uint64_t index = first_of(records, thread, threads);
  for (operation& made : result) {
    made.kind = operation_kind::insert;
    made.key = key_of(index++);
    made.value = value_of(made.key, 0);
  }
  return result;
}

}  // namespace pmlab::workload
