// A DRAM that several hosts share, each with a view of its own, and other media for tests of indexes for hosts. Caches
// that are not coherent, deaths and power failures are verified on the simulated machine.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/wrapper.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::tests {

// What the hosts share. The last block of coherent memory is known.
struct host_memory {
  media::dram dram;
  const char* coherent = nullptr;
  std::size_t coherent_bytes = 0;
};

// What one host sees of it. It counts the lines that it refreshes, but for those of coherent memory.
class host_view {
 public:
  static constexpr bool durable = false;
  static constexpr bool shared_by_hosts = true;
  static constexpr media::optional_parts parts{};

  host_view(host_memory& memory, unsigned host, unsigned hosts) : memory_(memory), host_(host), hosts_(hosts) {}

  class publication : public media::dram::publication {
   public:
    explicit publication(host_view& view) noexcept : media::dram::publication(view.memory_.dram), view_(view) {}
    [[nodiscard]] void* allocate_coherent(std::size_t bytes, std::size_t alignment) {
      void* const block = allocate(bytes, alignment);
      view_.memory_.coherent = static_cast<const char*>(block);
      view_.memory_.coherent_bytes = bytes;
      return block;
    }

   private:
    host_view& view_;
  };

  [[nodiscard]] std::string name() const { return "host"; }
  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return memory_.dram.resolve(p);
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return memory_.dram.locate(object);
  }
  void flush(const void* start, std::size_t bytes) noexcept { memory_.dram.flush(start, bytes); }
  void fence() noexcept { memory_.dram.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { memory_.dram.copy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}
  [[nodiscard]] media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    return memory_.dram.named_root(name, layout, version);
  }
  [[nodiscard]] media::usage used() const { return memory_.dram.used(); }

  [[nodiscard]] unsigned hosts() const noexcept { return hosts_; }
  [[nodiscard]] unsigned host() const noexcept { return host_; }
  [[nodiscard]] bool host_is_alive(unsigned /*host*/) const noexcept { return true; }
  void refresh(const void* start, std::size_t bytes) noexcept {
    if (static_cast<std::size_t>(static_cast<const char*>(start) - memory_.coherent) < memory_.coherent_bytes) return;
    media::for_each_line(start, bytes, [this](std::uintptr_t) { ++refreshed_lines; });
  }
  bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                               std::uint64_t desired) noexcept {
    return word.compare_exchange_strong(expected, desired);
  }

  std::atomic<std::uint64_t> refreshed_lines{0};

 private:
  host_memory& memory_;
  unsigned host_;
  unsigned hosts_;
};
static_assert(media::pod_medium<host_view>);

// Lines that `search` refreshes.
template <class Search>
std::uint64_t refreshed_by(host_view& view, Search&& search) {
  const std::uint64_t before = view.refreshed_lines;
  search();
  return view.refreshed_lines - before;
}

// DRAM with an end, and of whose publications one throws.
class odd_dram : public media::wrapper<media::dram> {
 public:
  static constexpr media::optional_parts parts{.pointer_bound = true};
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  // `throwing`: the number of the publication that throws, from 0.
  explicit odd_dram(std::uint64_t throwing = none) : media::wrapper<media::dram>(std::in_place), left_(throwing) {}

  void flush(const void* start, std::size_t bytes) noexcept { inner().flush(start, bytes); }
  void fence() noexcept { inner().fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { inner().copy(target, source, bytes); }
  void annotate_read(const void* start, std::size_t bytes) noexcept { inner().annotate_read(start, bytes); }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return bound; }

  class publication : public media::dram::publication {
   public:
    explicit publication(odd_dram& memory) : media::dram::publication(memory.inner()), memory_(memory) {}
    void commit() {
      if (memory_.left_-- == 0) throw error("the publication fails", "");
      media::dram::publication::commit();
    }

   private:
    odd_dram& memory_;
  };

  std::uint64_t bound = none;

 private:
  std::uint64_t left_;
};
static_assert(media::medium<odd_dram>);

}  // namespace pmlab::tests
