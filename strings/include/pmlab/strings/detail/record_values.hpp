// The values of records: a word in the record, or a block of their own.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/blocks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pmlab::strings::detail {

// `Values`: word_values or blob_values. Thread safety: any operation from any number of threads (`check`: no writer).
template <media::medium Medium, class Values>
class record_values {
  using publication = typename Medium::publication;
  using value_type = typename Values::value_type;
  using value_view = typename Values::view;

 public:
  // `stripes`: of the locks, a power of two.
  record_values(Medium& medium, std::size_t stripes) : medium_(medium), locks_(stripes) {}

  // The value as its record has it, with its block as a part of `change`; std::nullopt: no space.
  [[nodiscard]] std::optional<std::uint64_t> store(publication& change, value_view value) const {
    if constexpr (Values::in_blocks) {
      if (value.empty()) return 0;
      const auto* const made = make_block<bytes_block>(medium_, change, value, [](bytes_block&) {});
      return made == nullptr ? std::nullopt : std::optional(medium_.locate(made).word());
    } else {
      return value;
    }
  }

  // A value changes under the lock of its record, which is another one than its word's: a scan reaches records through
  // words that may change before it reads the value.
  [[nodiscard]] sync::version_lock& lock_of(const record& r) const noexcept {
    return locks_[medium_.locate(&r).word() / media::cache_line_bytes];
  }

  // As a reader returns it: it survives a crash.
  [[nodiscard]] value_type durable(const record& r) const {
    const sync::version_lock& lock = lock_of(r);
    for (;;) {
      const std::uint64_t version = lock.read_begin();
      value_type value = of(r);
      if (lock.read_validate(version)) return value;
    }
  }
  // Without a lock. REQUIRES: no writer.
  [[nodiscard]] value_type of(const record& r) const {
    const std::uint64_t stored = r.value.load(std::memory_order_acquire);
    if constexpr (Values::in_blocks) {
      if (stored == 0) return {};
      const bytes_block& block = block_at(stored);
      media::annotate_read(medium_, block);
      const std::string_view text = block.text();
      medium_.annotate_read(text.data(), text.size());
      return value_type(text);
    } else {
      return stored;
    }
  }

  // Releases the block, if there is one, as a part of `change`.
  void release(publication& change, const record& of) const {
    if constexpr (Values::in_blocks) {
      const std::uint64_t stored = of.value.load(std::memory_order_acquire);
      if (stored != 0) release_block(change, block_at(stored));
    }
  }

  // The bytes of the block.
  [[nodiscard]] std::uint64_t medium_bytes(const record& of) const {
    if constexpr (Values::in_blocks) {
      const std::uint64_t stored = of.value.load(std::memory_order_acquire);
      return stored == 0 ? 0 : block_at(stored).block_bytes();
    } else {
      return 0;
    }
  }
  [[nodiscard]] std::size_t dram_bytes() const noexcept { return locks_.bytes(); }

  void check(const record& r, indexes::check_report& report) const {
    if constexpr (Values::in_blocks) {
      const media::pointer<bytes_block> stored(r.value.load(std::memory_order_acquire));
      if (stored && (!media::can_name(medium_, stored) ||
                     !media::can_name(medium_, stored, medium_.resolve(stored)->block_bytes())))
        report.add("V3: a value leads nowhere");
    }
  }

 private:
  [[nodiscard]] bytes_block& block_at(std::uint64_t at) const noexcept {
    return *medium_.resolve(media::pointer<bytes_block>(at));
  }

  Medium& medium_;
  sync::version_lock_table locks_;
};

}  // namespace pmlab::strings::detail
