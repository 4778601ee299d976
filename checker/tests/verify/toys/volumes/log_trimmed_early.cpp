// A toy: a log on the drive, whose head moves on before the blocks that it was copied to have been flushed.
#include "checker/verify/register_volume.hpp"
#include "redirecting_volume.hpp"

#include <pmlab/blocks/synchronous.hpp>

namespace pmlab::toys {
namespace {

// A write goes to the log: its blocks to the drive, an entry to the memory. A full log is copied to the home places.
template <class Medium, class Drive>
class volume {
 public:
  static constexpr std::string_view layout_name = "log_trimmed_early";
  static constexpr verify::volume_shape shape{.block_bytes = 512, .blocks = 12, .chunk_blocks = 12};
  static constexpr blocks::geometry drive{.blocks = 24, .block_bytes = 512, .atomic_bytes = 512};

  volume(Medium& medium, Drive& on) : medium_(medium), drive_(on), log_(log_of(medium)), staged_(block) {
    const std::uint64_t entries = log_.entries_in_use.load(std::memory_order_acquire);
    for (std::uint64_t e = 0; e < entries; ++e) note(log_.entries[e].load(std::memory_order_acquire));
    entries_ = entries;
  }

  bool write(std::uint64_t first, std::span<const std::byte> data) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t count = data.size() / block;
    if (used_ + count > log_blocks) empty_log();
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(staged_.data(), data.data() + i * block, block);
      drive_.write(shape.blocks + used_ + i, staged_.bytes());
    }
    drive_.flush();
    const std::uint64_t entry = first << 32 | count << 16 | used_;
    // (L1) < (L2): the entry's line is flushed and fenced before the number of entries changes.
    log_.entries[entries_].store(entry, std::memory_order_release);  // (L1)
    media::persist(medium_, log_.entries[entries_]);
    log_.entries_in_use.store(++entries_, std::memory_order_release);  // (L2)
    media::persist(medium_, log_.entries_in_use);
    note(entry);
    return true;
  }

  void read(std::uint64_t first, std::span<std::byte> data) {
    const std::scoped_lock lock(mutex_);
    for (std::uint64_t i = 0; i < data.size() / block; ++i) {
      drive_.read(newest_[first + i] != 0 ? newest_[first + i] : first + i, staged_.bytes());
      std::memcpy(data.data() + i * block, staged_.data(), block);
    }
  }

 private:
  using word = std::atomic<std::uint64_t>;
  static constexpr std::size_t block = shape.block_bytes;
  static constexpr std::uint64_t log_blocks = drive.blocks - shape.blocks;

  struct alignas(media::cache_line_bytes) log_area {
    word entries_in_use{0};
    alignas(media::cache_line_bytes) std::array<word, log_blocks> entries{};
  };

  static log_area& log_of(Medium& medium) {
    word& root = *medium.named_root(layout_name, layout_name, 1).word;
    if (root.load(std::memory_order_acquire) == 0) {
      typename Medium::publication change(medium);
      auto* const made = media::create<log_area>(change);
      media::persist(medium, *made);
      change.store(root, medium.locate(made).word());
      change.commit();
    }
    return *medium.resolve(media::pointer<log_area>(root.load(std::memory_order_acquire)));
  }

  void note(std::uint64_t entry) {
    const std::uint64_t count = entry >> 16 & 0xffff;
    const std::uint64_t from = entry & 0xffff;
    for (std::uint64_t i = 0; i < count; ++i) newest_[(entry >> 32) + i] = shape.blocks + from + i;
    used_ = from + count;
  }

  // (T1) the blocks are home, (T2) the log is empty
  // (T1) < (T2): a flush of the drive, submitted after the writes completed, has completed before the store.
  void empty_log() {
    for (std::uint64_t b = 0; b < shape.blocks; ++b) {
      if (newest_[b] == 0) continue;
      drive_.read(newest_[b], staged_.bytes());
      drive_.write(b, staged_.bytes());  // (T1)
    }
    if (!has_defect()) drive_.flush();
    log_.entries_in_use.store(0, std::memory_order_release);  // (T2)
    media::persist(medium_, log_.entries_in_use);
    newest_ = {};
    used_ = entries_ = 0;
  }

  Medium& medium_;
  blocks::synchronous<Drive> drive_;
  log_area& log_;
  blocks::buffer staged_;
  std::array<std::uint64_t, shape.blocks> newest_{};  // block of the log, 0: home
  std::uint64_t used_ = 0;                            // blocks of the log
  std::uint64_t entries_ = 0;
  std::mutex mutex_;
};

const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
