// A tiered store whose memtable is in persistent memory: nothing may be lost, on joint crash states of the memory and
// both drives.
#include "checker/verify/tiered_subject.hpp"
#include <pmlab/stores/tiered/memory.hpp>

namespace pmlab::verify {
namespace {

template <class Medium, class Drive>
using tiered_on = stores::tiered<Drive, blocks::virtual_clock, stores::memtable_on<Medium>>;

template <class Medium, class Drive>
class tiered_pm_subject : public tiered_target<tiered_on<Medium, Drive>> {
  using store = tiered_on<Medium, Drive>;
  using base = tiered_target<store>;

 public:
  static constexpr std::string_view layout_name = "tiered_pm";
  static constexpr std::uint64_t at_most_milliseconds = 0;  // nothing may be lost
  static constexpr std::array<blocks::geometry, 2> drives{
      blocks::geometry{.blocks = 64, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true},
      blocks::geometry{.blocks = 46, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true}};

  // The fewest segments that a store has: 8 and 10.
  static constexpr std::array<blocks::geometry, 2> small_drives{
      blocks::geometry{.blocks = 50, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true},
      blocks::geometry{.blocks = 32, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true}};

  tiered_pm_subject(Medium& memory, Drive& staging, Drive& capacity)
      : base([&](blocks::virtual_clock clock) {
          return store::open({.staging = staging, .capacity = capacity, .memory = &memory}, options(), clock);
        }) {}

 private:
  // A few changes make a set, so that their versions leave the memory within a round.
  static stores::tiered_options options() {
    stores::tiered_options o = base::options();
    o.loss.at_most = std::chrono::nanoseconds(0);
    o.memtable_bytes = 1500;
    o.memory_limit = 32768;
    o.cache_bytes = 4096;
    return o;
  }
};

const bool registered = register_prefix_on_memory<tiered_pm_subject>();

}  // namespace
}  // namespace pmlab::verify
