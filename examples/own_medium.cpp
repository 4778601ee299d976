// A medium of your own: a wrapper around any medium that counts how many fences an index waits for.
//
// An index is a template over its medium and requires only the concept media::medium. So a medium takes one header:
// here a class derived from media::wrapper, which forwards all operations that this one does not change.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/wrapper.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

// [medium]
template <pmlab::media::medium Inner>
class fence_counter : public pmlab::media::wrapper<Inner> {
  using base = pmlab::media::wrapper<Inner>;

 public:
  // `arguments` build the inner medium.
  template <class... Arguments>
  explicit fence_counter(Arguments&&... arguments) : base(std::in_place, std::forward<Arguments>(arguments)...) {}

  // Fences since the medium was made, of all threads.
  [[nodiscard]] std::uint64_t fences() const noexcept { return fences_.load(std::memory_order_relaxed); }

  [[nodiscard]] std::string name() const { return "fence_counter:" + base::name(); }

  void flush(const void* start, std::size_t bytes) noexcept { this->inner().flush(start, bytes); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { this->inner().copy(target, source, bytes); }
  void annotate_read(const void* start, std::size_t bytes) noexcept { this->inner().annotate_read(start, bytes); }
  void fence() noexcept {
    fences_.fetch_add(1, std::memory_order_relaxed);
    this->inner().fence();
  }

  // Allocations are those of the inner medium.
  class publication : public Inner::publication {
   public:
    explicit publication(fence_counter& medium) : Inner::publication(medium.inner()) {}
  };

 private:
  std::atomic<std::uint64_t> fences_{0};
};
static_assert(pmlab::media::medium<fence_counter<pmlab::media::dram>>);
// [medium]

namespace {

// [use]
template <template <class> class Index>
double fences_per_insert(std::uint64_t keys) {
  using medium = fence_counter<pmlab::media::dram>;
  medium memory;
  auto index = Index<medium>::open(memory);
  const std::uint64_t before = memory.fences();
  for (std::uint64_t key = 1; key <= keys; ++key) static_cast<void>(index.insert(key, key));
  return static_cast<double>(memory.fences() - before) / static_cast<double>(keys);
}
// [use]

}  // namespace

int main() {
  try {
    std::printf("cceh       %.2f fences per insert\n", fences_per_insert<pmlab::indexes::cceh>(100'000));
    std::printf("fast_fair  %.2f fences per insert\n", fences_per_insert<pmlab::indexes::fast_fair>(100'000));
  } catch (const pmlab::error& failed) {
    std::fprintf(stderr, "own_medium: %s\n", failed.what());
    return 1;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "own_medium: %s\n", failed.what());
    return 1;
  }
}
