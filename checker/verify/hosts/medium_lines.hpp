// Lines for pod::space from a medium: two blocks of it, one of which is coherent between hosts where there is such
// memory. So the machine, and images of crashes, run what runs on a shared file.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/pod/line_memory.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace pmlab::verify {

// `coherent_bytes` of `bytes` bytes lie in coherent memory. Both blocks are there as long as the medium.
template <media::medium Medium, std::size_t bytes_, std::size_t coherent_bytes_>
class medium_lines {
 public:
  explicit medium_lines(Medium& medium) : medium_(medium), blocks_(blocks_of(medium)) {}

  [[nodiscard]] static constexpr std::uint64_t held_bytes() noexcept { return sizeof(blocks) + bytes_; }

  [[nodiscard]] std::string name() const { return "lines of " + medium_.name(); }
  [[nodiscard]] static std::uint64_t bytes() noexcept { return bytes_; }
  [[nodiscard]] static std::uint64_t coherent_bytes() noexcept { return coherent_bytes_; }
  [[nodiscard]] char* at(std::uint64_t offset) const noexcept {
    return offset < coherent_bytes_ ? medium_.resolve(blocks_.coherent)->bytes.data() + offset
                                    : medium_.resolve(blocks_.other)->bytes.data() + (offset - coherent_bytes_);
  }
  [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept {
    const char* const coherent = at(0);
    const auto* const byte = static_cast<const char*>(address);
    if (byte >= coherent && byte < coherent + coherent_bytes_) return static_cast<std::uint64_t>(byte - coherent);
    return static_cast<std::uint64_t>(byte - at(coherent_bytes_)) + coherent_bytes_;
  }
  [[nodiscard]] static bool is_durable() noexcept { return true; }

  [[nodiscard]] bool is_alone() const noexcept { return media::hosts_of(medium_) == 1; }
  // The machine knows who is who.
  [[nodiscard]] bool take_host(unsigned host) const noexcept { return host == media::host_of(medium_); }
  void release_host(unsigned /*host*/) noexcept {}
  [[nodiscard]] bool has_died(unsigned host) const noexcept { return !media::host_is_alive(medium_, host); }

  void flush(const void* address, std::size_t bytes) noexcept { medium_.flush(address, bytes); }
  void fence() noexcept { medium_.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { medium_.copy(target, source, bytes); }
  void refresh(const void* address, std::size_t bytes) noexcept {
    if constexpr (media::pod_medium<Medium>) medium_.refresh(address, bytes);
  }
  bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                               std::uint64_t desired) noexcept {
    return media::device_compare_exchange(medium_, word, expected, desired);
  }
  void device_store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    typename Medium::publication change(medium_);
    change.store(word, value);
    change.commit();
  }

 private:
  struct alignas(media::cache_line_bytes) coherent_lines {
    std::array<char, coherent_bytes_> bytes;
  };
  struct alignas(media::cache_line_bytes) other_lines {
    std::array<char, bytes_ - coherent_bytes_> bytes;
  };
  struct blocks {
    media::pointer<coherent_lines> coherent;
    media::pointer<other_lines> other;
  };

  [[nodiscard]] static blocks blocks_of(Medium& medium) {
    std::atomic<std::uint64_t>& named = *medium.named_root("lines", "lines", 1).word;
    media::refresh(medium, named);
    if (named.load(std::memory_order_acquire) == 0) {
      typename Medium::publication made(medium);
      void* const coherent = coherent_block(made);
      auto* const other = static_cast<char*>(made.allocate(sizeof(other_lines), alignof(other_lines)));
      auto* const both = media::create<blocks>(made);
      if (coherent == nullptr || other == nullptr || both == nullptr)
        throw error("no space for lines", "give the medium " + std::to_string(bytes_) + " bytes");
      both->coherent = media::pointer<coherent_lines>(medium.locate(static_cast<char*>(coherent)).word());
      both->other = media::pointer<other_lines>(medium.locate(other).word());
      // No space is made in there yet.
      auto& first = *static_cast<std::atomic<std::uint64_t>*>(coherent);
      first.store(0, std::memory_order_relaxed);
      media::publish(medium, first);
      media::publish(medium, *both);
      made.store(named, medium.locate(both).word());
      made.commit();
    }
    const blocks& both = *medium.resolve(media::pointer<blocks>(named.load(std::memory_order_acquire)));
    media::refresh(medium, both);
    return both;
  }
  template <class Publication>
  [[nodiscard]] static void* coherent_block(Publication& made) {
    if constexpr (requires { made.allocate_coherent(sizeof(coherent_lines), alignof(coherent_lines)); })
      return made.allocate_coherent(sizeof(coherent_lines), alignof(coherent_lines));
    else
      return made.allocate(sizeof(coherent_lines), alignof(coherent_lines));
  }

  Medium& medium_;
  blocks blocks_;
};

}  // namespace pmlab::verify
