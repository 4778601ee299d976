// The processes of a round.
#include "tools/pod/host_process.hpp"
#include "checker/verify/hosts/copied_buckets.hpp"
#include "tools/pod/dying_lines.hpp"
#include <pmlab/base/random.hpp>
#include <pmlab/pod/file_lines.hpp>
#include <pmlab/pod/shared_dash.hpp>
#include <pmlab/pod/shared_file.hpp>
#include <pmlab/pod/shared_ring.hpp>
#include <pmlab/pod/shared_tree.hpp>
#include <pmlab/pod/stale_lines.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sched.h>

namespace pmlab::pods {
namespace {

// The kernel sends SIGKILL then.
void be_killed_in(std::uint64_t nanoseconds) {
  sigevent by{};
  by.sigev_notify = SIGEV_SIGNAL;
  by.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec at{};
  at.it_value.tv_nsec = static_cast<long>(nanoseconds) + 1;
  if (::timer_create(CLOCK_MONOTONIC, &by, &timer) != 0 || ::timer_settime(timer, 0, &at, nullptr) != 0)
    throw error(std::string("no timer for a kill: ") + std::strerror(errno), "give --kills 0");
}
void begin_to_die(const kill_time& when) {
  if (when.moments != 0)
    moments_to_live = when.moments;
  else
    be_killed_in(when.nanoseconds);
}

// Each has few locks, so that keys share them, and a host remembers less than it reads.
struct tree {
  template <class Medium>
  using index = pod::shared_tree<Medium, pod::tree_sizes{.locks = 16, .remembered = 32}>;
  static constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
};
struct dash {
  template <class Medium>
  using index = pod::shared_dash<Medium, pod::table_sizes{.locks = 16, .stash_locks = 4, .remembered = 256}>;
  static constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
};
struct ring {
  template <class Medium>
  using index = pod::shared_ring<Medium>;
  static constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
};
// Each change allocates and releases a block. It has few chunks, so that they change hands.
struct space {
  template <class Medium>
  class index : public verify::copied_buckets<Medium> {
   public:
    static constexpr std::string_view layout_name = "shared_space";
    static constexpr std::uint64_t layout_version = 1;
    [[nodiscard]] static index open(Medium& medium) { return index(medium); }

   private:
    using verify::copied_buckets<Medium>::copied_buckets;
  };
  static constexpr std::uint64_t bytes = std::uint64_t{1} << 20;
};

template <pod::line_memory Lines, class Kind>
class typed_round final : public round_of_hosts {
  using memory = pod::space<dying_lines<Lines>>;
  using index = typename Kind::template index<memory>;

 public:
  typed_round(const run_options& o, std::uint64_t seed, std::string path)
      : options_(o), seed_(seed), path_(std::move(path)) {}

  void make(const std::vector<indexes::entry>& entries) override {
    using simulator::coherence;
    const std::uint64_t coherent = options_.lines == coherence::full      ? Kind::bytes
                                   : options_.lines == coherence::partial ? Kind::bytes / 4
                                                                          : 0;
    pod::make_shared_file<Lines>(path_, Kind::bytes, coherent);
    with_index(pod::sharing::alone, seed_, {}, [&](memory& /*m*/, index& i) {
      for (const indexes::entry& e : entries)
        if (i.insert(e.key, e.value) != indexes::outcome::inserted)
          throw error("the memory has no room for the first entries", "give fewer --keys");
    });
  }

  void be_host(std::size_t process, const std::vector<std::uint64_t>& keys, const kill_time& when,
               operation_log& log) override {
    process_log& mine = log.process(process);
    splitmix64 source(seed_ * most_processes + process);
    const std::span<operation_record> records = log.records(process);
    const auto of_a_stay = static_cast<std::size_t>(options_.operations_of_a_stay());
    for (std::size_t first = 0; first < records.size(); first += of_a_stay) {
      if (when.at_joining && first <= when.operation && when.operation < first + of_a_stay) begin_to_die(when);
      with_index(pod::sharing::with_others, source.next(), options_.faults, [&](memory& m, index& i) {
        mine.is_ready.store(true, std::memory_order_release);
        for (sync::backoff wait; !log.may_begin().load(std::memory_order_acquire);) wait.pause();
        for (std::size_t n = first; n < std::min(records.size(), first + of_a_stay); ++n) {
          operation_record& r = records[n];
          // Half of the operations are on some keys that all hosts change.
          const std::size_t hot = std::min<std::size_t>(keys.size(), 16);
          const std::uint64_t key = keys[source.below(source.below(2) == 0 ? hot : keys.size())];
          r.what = {verify::random_action(source, {.insert = 25, .update = 15, .upsert = 15, .erase = 20}), key,
                    (std::uint64_t{process} << 32) + n + 1};
          // There are fewer processors than hosts: they take turns.
          if (source.below(16) == 0) ::sched_yield();
          if (!when.at_joining && n == when.operation) begin_to_die(when);
          r.called = clock_now();
          mine.begun.store(n + 1, std::memory_order_release);
          r.got = verify::perform(r.what, i);
          r.returned.store(clock_now(), std::memory_order_release);
        }
        if constexpr (std::is_same_v<Lines, pod::stale_lines>) mine.happened += m.lines().happened();
      });
    }
    mine.has_ended.store(true, std::memory_order_release);
  }

  [[nodiscard]] found_state look(bool alone) override {
    found_state result;
    // Faults are those of the hosts.
    with_index(alone ? pod::sharing::alone : pod::sharing::with_others, seed_, {}, [&](memory& m, index& i) {
      result.entries = verify::entries_of(i);
      const indexes::check_report report = i.check();
      if (!report.ok()) {
        result.violation = report.violations.front();
        return;
      }
      const std::uint64_t allocated = m.used().allocated_bytes;
      const std::uint64_t held = i.stats().medium_bytes;
      if (allocated != held)
        result.violation =
            std::to_string(allocated) + " bytes are allocated, and the index holds " + std::to_string(held);
    });
    return result;
  }

 private:
  template <class Use>
  void with_index(pod::sharing how, std::uint64_t seed, const pod::stale_faults& faults, Use&& use) {
    if constexpr (std::is_same_v<Lines, pod::stale_lines>) {
      memory m(path_, how, seed, faults);
      index i = index::open(m);
      use(m, i);
    } else {
      memory m(path_, how);
      index i = index::open(m);
      use(m, i);
    }
  }

  run_options options_;
  std::uint64_t seed_;
  std::string path_;
};

template <class Kind>
std::unique_ptr<round_of_hosts> made(const run_options& o, std::uint64_t seed, std::string path) {
  if (o.has_stale_copies) return std::make_unique<typed_round<pod::stale_lines, Kind>>(o, seed, std::move(path));
  return std::make_unique<typed_round<pod::file_lines, Kind>>(o, seed, std::move(path));
}

struct kind {
  std::string name;
  std::unique_ptr<round_of_hosts> (*make)(const run_options&, std::uint64_t, std::string);
};
const std::array<kind, 4>& kinds() {
  static const std::array<kind, 4> all = {{{"shared_dash", made<dash>},
                                           {"shared_ring", made<ring>},
                                           {"shared_space", made<space>},
                                           {"shared_tree", made<tree>}}};
  return all;
}

}  // namespace

const std::vector<std::string>& shared_indexes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const kind& k : kinds()) all.push_back(k.name);
    return all;
  }();
  return names;
}

std::unique_ptr<round_of_hosts> make_round(const run_options& o, std::uint64_t seed, std::string path) {
  const auto found = std::find_if(kinds().begin(), kinds().end(), [&](const kind& k) { return k.name == o.index; });
  return found->make(o, seed, std::move(path));
}

}  // namespace pmlab::pods
