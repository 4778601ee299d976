// A toy: a header of two fields that lies in two units of the drive, so that a crash may keep one of them (B1).
//
// The same happened to a public store whose log header is updated field by field: a crash between the generation and
// the checksum made it impossible to open.
#include "checker/verify/register_volume.hpp"
#include "redirecting_volume.hpp"

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/synchronous.hpp>

namespace pmlab::toys {
namespace {

// All on the drive: blocks 0 and 1 are the header, whose map leads to the others.
template <class Medium, class Drive>
class volume {
 public:
  static constexpr std::string_view layout_name = "torn_header";
  static constexpr verify::volume_shape shape{.block_bytes = 512, .blocks = 12, .chunk_blocks = 12};
  static constexpr blocks::geometry drive{.blocks = 32, .block_bytes = 512, .atomic_bytes = 512};

  volume(Medium& /*medium*/, Drive& on) : drive_(on), header_(2 * block), staged_(block) {
    drive_.read(0, header_.bytes());
    if (generation() != 0 && checksum_place() != checksum()) throw error("the header is damaged", "restore a copy");
    std::array<bool, drive.blocks> used{true, true};
    for (std::uint64_t b = 0; b < shape.blocks; ++b) used[mapped(b)] = true;
    for (std::uint64_t b = drive.blocks; b > 0; --b)
      if (!used[b - 1]) free_.push_back(b - 1);
  }

  bool write(std::uint64_t first, std::span<const std::byte> data) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint64_t> old;
    for (std::uint64_t i = 0; i < data.size() / block; ++i) {
      std::memcpy(staged_.data(), data.data() + i * block, block);
      drive_.write(free_.back(), staged_.bytes());
      if (mapped(first + i) != 0) old.push_back(mapped(first + i));
      mapped(first + i) = free_.back();
      free_.pop_back();
    }
    drive_.flush();
    ++generation();
    checksum_place() = checksum();
    // A header with the checksum beside the fields is one unit.
    drive_.write_durable(0, std::span<const std::byte>(header_.bytes()).first(has_defect() ? 2 * block : block));
    free_.insert(free_.end(), old.begin(), old.end());
    return true;
  }

  void read(std::uint64_t first, std::span<std::byte> data) {
    const std::scoped_lock lock(mutex_);
    for (std::uint64_t i = 0; i < data.size() / block; ++i) {
      std::memset(staged_.data(), 0, block);
      if (mapped(first + i) != 0) drive_.read(mapped(first + i), staged_.bytes());
      std::memcpy(data.data() + i * block, staged_.data(), block);
    }
  }

 private:
  static constexpr std::size_t block = shape.block_bytes;
  static constexpr std::size_t words_in_block = block / sizeof(std::uint64_t);

  [[nodiscard]] std::uint64_t* words() noexcept { return reinterpret_cast<std::uint64_t*>(header_.data()); }
  [[nodiscard]] std::uint64_t& generation() noexcept { return words()[0]; }
  [[nodiscard]] std::uint64_t& mapped(std::uint64_t b) noexcept { return words()[1 + b]; }
  [[nodiscard]] std::uint64_t& checksum_place() noexcept {
    return words()[has_defect() ? words_in_block : words_in_block - 1];
  }
  [[nodiscard]] std::uint64_t checksum() noexcept {
    std::uint64_t sum = 1;
    for (std::size_t i = 0; i <= shape.blocks; ++i) sum = mix_bits(sum + words()[i]);
    return sum;
  }

  blocks::synchronous<Drive> drive_;
  blocks::buffer header_;
  blocks::buffer staged_;
  std::vector<std::uint64_t> free_;
  std::mutex mutex_;
};

const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
