// A case: one measurement of a memory, one point of a suite's matrix. Plain data.
//
// Accesses are in a region of `working_set_bytes`. It is cut into places of `access_bytes` each (at random:
// `align_bytes` apart at least), every place begins `offset_bytes` past its border, and `pattern` is the order of
// accesses to the places. All fields are in suites (TOML) and results (JSON) under these names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::microbench {

enum class operation_kind : std::uint8_t {
  load,
  copy,  // a load whose bytes go to DRAM of the thread's own, `access_bytes` of it: memcpy into a buffer
  store,
  mixed,               // `readers` threads load while `writers` threads store
  read_after_persist,  // `steps` on one place after the other
};

// The widest instruction of an access, load or store; a smaller access uses the widest that fits.
enum class load_kind : std::uint8_t {
  scalar,  // 8 bytes
  avx2,    // 32 bytes
  avx512,  // 64 bytes
  widest,  // the widest that the CPU has; results name it
};

enum class store_kind : std::uint8_t {
  ntstore,     // around the caches
  clwb,        // store, then write back: the line may stay in the cache
  clflushopt,  // store, then write back: the line leaves the cache
  clflush,     // the same, one line after the other
  plain,       // store alone; the cache evicts the line at any time
  movdir64b,   // 64 bytes around the caches as one
};

enum class pattern_kind : std::uint8_t {
  sequential,
  random,   // a permutation: every place once before any is repeated
  strided,  // `stride_bytes` from one place to the next
  chase,    // each place holds the address of the next, on one random cycle through all of them
  zipfian,  // place of rank r with probability proportional to r^-theta, ranks scattered
  hot,      // the first `hot_lines` lines, at random
  halves,   // every other place, then those in between: the probe of a write-combining buffer
};

enum class measure_kind : std::uint8_t {
  bandwidth,  // accesses in a row, bytes over time
  latency,    // each access timed by itself; chase: the chain over its length
};

// The state of the CPU's caches when an access begins.
enum class cache_state : std::uint8_t {
  as_is,
  cold,  // its lines were flushed: chases flush everything before each pass over it, timed accesses flush their place
  warm,  // its lines were loaded just before, outside of the time taken; measure = latency only
};

// A step of read_after_persist.
enum class step_kind : std::uint8_t { load, persist };  // persist: store, write back as `store` says, fence

// Which memory a case is about.
struct case_medium {
  enum class kind : std::uint8_t {
    given,    // the one that the user named
    dram,     // DRAM beside it: dram, or simulated:dram
    profile,  // another device profile, emulated or simulated as the user's; skipped on real memory
  };
  kind which = kind::given;
  std::string profile;

  friend bool operator==(const case_medium&, const case_medium&) = default;
};

// A fence, in units of stored bytes.
inline constexpr std::uint64_t fence_never = 0;
inline constexpr std::uint64_t fence_each_access = ~std::uint64_t{0};

struct bench_case {
  // The origin of the case.
  std::string group;                // the [[case]] of the suite
  std::string name;                 // group/field=value/...: the fields that the matrix varies; unique in a suite
  std::string about;                // one line
  std::vector<std::string> claims;  // "M1": the claims that it is evidence for
  std::optional<double> published;  // figure of the first generation of Optane, in `published_unit`
  std::string published_unit;       // "ns" or "GiB/s"

  case_medium medium;
  operation_kind operation = operation_kind::load;
  load_kind load = load_kind::widest;
  store_kind store = store_kind::ntstore;
  pattern_kind pattern = pattern_kind::random;
  measure_kind measure = measure_kind::bandwidth;
  std::uint64_t access_bytes = 64;  // 8, 16, 32, or a multiple of 64 up to 16 MiB
  std::uint64_t align_bytes = 0;    // least distance of places; 0: access_bytes
  std::uint64_t offset_bytes = 0;   // distance of each access from its place's border; less than 64
  std::uint64_t working_set_bytes = std::uint64_t{64} << 20;  // bytes of all threads together
  bool private_sets = false;                // each thread has a separate part; else all share all of it
  std::uint64_t stride_bytes = 0;           // strided
  double theta = 0.99;                      // zipfian
  std::uint64_t hot_lines = 1;              // hot
  bool dependent = false;                   // an access begins when the one before has ended
  std::uint64_t fence_bytes = fence_never;  // stores: a fence after so many bytes
  cache_state cache = cache_state::as_is;
  std::uint64_t idle_ns = 0;     // between accesses that are timed one by one
  std::vector<step_kind> steps;  // read_after_persist
  bool last_step_only = false;   // read_after_persist: the steps before the last are not timed
  unsigned threads = 1;          // mixed: readers + writers
  unsigned readers = 0;          // mixed
  unsigned writers = 0;          // mixed
  int memory_node = -1;          // NUMA; -1: where the first thread runs
  int thread_node = -1;          // NUMA; -1: any

  // How long.
  double warm_up_seconds = 0;    // before each repetition; 0: the medium's default
  double seconds = 0;            // seconds of one repetition; 0: the medium's default
  std::uint64_t samples = 0;     // latency: at most so many accesses in one repetition; 0: by time alone
  unsigned min_repetitions = 0;  // 0: the medium's default
  unsigned max_repetitions = 0;  // 0: the medium's default

  [[nodiscard]] bool loads() const noexcept { return operation != operation_kind::store; }
  // To the memory under test: a copy's destination is beside it.
  [[nodiscard]] bool stores() const noexcept {
    return operation != operation_kind::load && operation != operation_kind::copy;
  }
};

// The words for the values of an enumeration, in its order, as suites, results and tables have them.
template <class Enum>
inline constexpr std::array<std::string_view, 0> words_of{};
template <>
inline constexpr std::array<std::string_view, 5> words_of<operation_kind>{"load", "copy", "store", "mixed",
                                                                          "read_after_persist"};
template <>
inline constexpr std::array<std::string_view, 4> words_of<load_kind>{"scalar", "avx2", "avx512", "widest"};
template <>
inline constexpr std::array<std::string_view, 6> words_of<store_kind>{"ntstore", "clwb",  "clflushopt",
                                                                      "clflush", "plain", "movdir64b"};
template <>
inline constexpr std::array<std::string_view, 7> words_of<pattern_kind>{"sequential", "random", "strided", "chase",
                                                                        "zipfian",    "hot",    "halves"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<measure_kind>{"bandwidth", "latency"};
template <>
inline constexpr std::array<std::string_view, 3> words_of<cache_state>{"as_is", "cold", "warm"};
template <>
inline constexpr std::array<std::string_view, 2> words_of<step_kind>{"load", "persist"};

template <class Enum>
concept has_words = !words_of<Enum>.empty();
template <has_words Enum>
[[nodiscard]] constexpr std::string_view to_string(Enum value) noexcept {
  return words_of<Enum>[static_cast<std::size_t>(value)];
}

[[nodiscard]] std::string pattern_text(const bench_case& c);       // "strided:4096", "zipfian:0.99", "hot:1", "random"
[[nodiscard]] std::string fence_text(std::uint64_t fence_bytes);   // "never", "each", "256"
[[nodiscard]] std::string medium_text(const case_medium& medium);  // "given", "dram", "profile:aep-6"

// Checks the consistency of several fields. Throws pmlab::error that begins with `place` and names the key.
void check_case(const bench_case& c, const std::string& place);

}  // namespace pmlab::microbench
