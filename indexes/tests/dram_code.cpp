// Compiled, and examined by dram_code_test.py: on DRAM, flush and fence are no instructions at all.
#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

// The words of two cache lines.
struct alignas(pmlab::media::cache_line_bytes) two_lines {
  std::array<std::atomic<std::uint64_t>, 16> words;
};
constexpr std::size_t value = 0;
constexpr std::size_t key = 8;

}  // namespace

// The stores of an insert, with all that makes them durable.
extern "C" void stores_persisted_on_dram(pmlab::media::dram& medium, two_lines& entry, std::uint64_t new_key,
                                         std::uint64_t new_value) {
  pmlab::media::annotate_read(medium, entry);
  entry.words[value].store(new_value, std::memory_order_release);
  pmlab::media::flush(medium, entry);
  medium.fence();
  entry.words[key].store(new_key, std::memory_order_release);
  pmlab::media::persist(medium, entry.words[key]);
}

// The same stores, and nothing else.
extern "C" void stores_alone(pmlab::media::dram& /*medium*/, two_lines& entry, std::uint64_t new_key,
                             std::uint64_t new_value) {
  entry.words[value].store(new_value, std::memory_order_release);
  entry.words[key].store(new_key, std::memory_order_release);
}

// Code that the test must detect.
extern "C" void stores_persisted_on_pm(pmlab::media::dram& /*medium*/, two_lines& entry, std::uint64_t new_key,
                                       std::uint64_t new_value) {
  entry.words[value].store(new_value, std::memory_order_release);
  pmlab::media::flush_lines(pmlab::media::best_flush_instruction(), &entry, sizeof entry);
  pmlab::media::store_fence();
  entry.words[key].store(new_key, std::memory_order_release);
}
