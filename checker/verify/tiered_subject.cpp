// A tiered store whose newest changes are in DRAM and in a log.
#include "checker/verify/tiered_subject.hpp"

namespace pmlab::verify {
namespace {

template <class Drive>
class tiered_subject : public tiered_target<stores::tiered<Drive, blocks::virtual_clock>> {
  using store = stores::tiered<Drive, blocks::virtual_clock>;

 public:
  static constexpr std::string_view layout_name = "tiered";
  static constexpr std::uint64_t at_most_milliseconds = 10;
  static constexpr std::array<blocks::geometry, 2> drives{
      blocks::geometry{.blocks = 64, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true},
      blocks::geometry{.blocks = 34, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true}};

  // The fewest segments that a store has: 8 and 10.
  static constexpr std::array<blocks::geometry, 2> small_drives{
      blocks::geometry{.blocks = 50, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true},
      blocks::geometry{.blocks = 32, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true}};

  tiered_subject(Drive& staging, Drive& capacity)
      : tiered_target<store>([&](blocks::virtual_clock clock) {
          return store::open({.staging = staging, .capacity = capacity}, tiered_target<store>::options(), clock);
        }) {}
};

const bool registered = register_prefix<tiered_subject>();

}  // namespace
}  // namespace pmlab::verify
