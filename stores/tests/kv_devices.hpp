// The devices that tests of the key-value SSD share: few instantiations, as each takes seconds to compile.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::tests {

// It counts and fails. Its reads are performed when they are submitted, and completed at the next reap.
using flash = blocks::faulty<blocks::counted<blocks::memory>>;
struct few_hashes {
  std::uint64_t operator()(std::uint8_t space, std::string_view key) const noexcept {
    return (stores::detail::kv_ssd::default_hash{}(space, key) % 97 + 1) * golden_ratio;
  }
};
// With the right hash, and with 97 hashes.
using device = stores::kv_device<media::dram, flash>;
using colliding = stores::kv_device<media::dram, flash, few_hashes>;

inline constexpr stores::kv_options small{
    .unit_bytes = 64, .superblock_bytes = 16384, .buffer_bytes = 8192, .largest_value = 1500, .bucket_bytes = 512};

// When it ends, the device's closing does nothing any more: the memory does not know its opening to be durable.
class killed {
 public:
  explicit killed(media::dram& memory) : memory_(memory) {}
  killed(const killed&) = delete;
  killed& operator=(const killed&) = delete;
  ~killed() {
    const auto at = memory_.named_root(device::layout_name, device::layout_name, device::layout_version).word;
    auto& root = *memory_.resolve(media::pointer<stores::detail::kv_ssd::state>(at->load()));
    const stores::detail::moment durable(root.durable);
    root.durable = stores::detail::moment::with_number(durable.number() - 1).word();
  }

 private:
  media::dram& memory_;
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }
[[nodiscard]] inline std::string text_of(std::span<const std::byte> v) {
  return {reinterpret_cast<const char*>(v.data()), v.size()};
}
[[nodiscard]] inline std::string random_value(splitmix64& random, std::size_t bytes) {
  std::string v(bytes, '\0');
  for (char& c : v) c = static_cast<char>(random.next());
  return v;
}
// PMLAB_KV_SEED replays a failure.
[[nodiscard]] inline std::uint64_t seed_or(std::uint64_t usual) {
  const char* const given = std::getenv("PMLAB_KV_SEED");
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

}  // namespace pmlab::tests
