// The media that a program chooses at run time, each compiled once.
#include "bench/catalogue/chosen_medium.hpp"
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/emulated.hpp>
#include <pmlab/media/pmem.hpp>
#include "bench/catalogue/media_list.hpp"

#include <new>
#include <type_traits>
#include <utility>

namespace pmlab::bench {
namespace {

using media::counted;
using media::dram;
using media::emulated;
using media::pmem;

// A medium by itself, so that it is constructed before its observer.
template <class Medium>
struct holder {
  template <class... Arguments>
  explicit holder(Arguments&&... arguments) : medium(std::forward<Arguments>(arguments)...) {}
  Medium medium;
};

template <class Medium>
class behind_calls final : private holder<Medium>, public chosen_medium {
  using holder<Medium>::medium;

  using own_change = erased::change_of<Medium>;
  static_assert(sizeof(own_change) <= sizeof(change_room) && alignof(own_change) <= alignof(change_room));

 public:
  template <class... Arguments>
  explicit behind_calls(Arguments&&... arguments)
      : holder<Medium>(std::forward<Arguments>(arguments)...), chosen_medium(facts_of(medium)) {}

  [[nodiscard]] std::string name() const override { return medium.name(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept override {
    medium.copy(target, source, bytes);
  }
  media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) override {
    return medium.named_root(name, layout, version);
  }
  [[nodiscard]] media::usage used() const override { return medium.used(); }

  std::vector<media::root_facts> roots() override { return roots_of(medium); }

  std::optional<media::counts> accesses() override { return accesses_of(medium); }
  void reset_accesses() override { reset(medium); }
  std::optional<media_sums> media_bytes() override { return media_bytes_of(medium); }
  std::optional<media::emulation_counts> emulation() override { return emulation_of(medium); }

 private:
  erased::any_change& begin_change(change_room& room) override {
    return *::new (static_cast<void*>(&room)) own_change(medium);
  }
  void observe_flush(const void* start, std::size_t bytes) noexcept override { medium.flush(start, bytes); }
  void observe_fence() noexcept override { medium.fence(); }
  void observe_read(const void* start, std::size_t bytes) noexcept override { medium.annotate_read(start, bytes); }
  void observe_prefetch(const void* start, std::size_t bytes) noexcept override {
    if constexpr (Medium::parts.prefetches) medium.prefetch(start, bytes);
  }
  void observe_begin() override { media::begin_operation(medium); }
  void observe_end() override { media::end_operation(medium); }

  static facts facts_of(const Medium& m) {
    facts found{.base = reinterpret_cast<std::uintptr_t>(m.resolve(media::pointer<char>())),
                .is_durable = Medium::durable,
                .persistence = media::persistence_of(m)};
    if constexpr (Medium::parts.pointer_bound) found.pointer_bound = m.pointer_bound();
    // As these media flush and fence themselves.
    if constexpr (std::is_same_v<Medium, dram>) found.is_observed = false;
    if constexpr (std::is_same_v<Medium, pmem>) {
      found.is_observed = false;
      found.has_fence = true;
      if (!media::keeps_caches(m.persistence())) found.flushes_with = m.flushes_with();
    }
    return found;
  }

  static std::vector<media::root_facts> roots_of(dram& /*in*/) { return {}; }
  static std::vector<media::root_facts> roots_of(pmem& in) { return in.roots(); }
  template <class Outer>
  static std::vector<media::root_facts> roots_of(Outer& around) {
    return roots_of(around.inner());
  }

  template <class Other>
  static std::optional<media::counts> accesses_of(Other& /*counts_nothing*/) {
    return std::nullopt;
  }
  template <class Inner>
  static std::optional<media::counts> accesses_of(counted<Inner>& counts) {
    return counts.total();
  }

  template <class Other>
  static std::optional<media_sums> media_bytes_of(Other& /*counts_nothing*/) {
    return std::nullopt;
  }
  template <class Inner>
  static std::optional<media_sums> media_bytes_of(emulated<Inner>& device) {
    const std::uint64_t granule = device.profile().granule_bytes;
    const auto work = device.device_work();
    return media_sums{granule, work.granules_read * granule, work.granules_written * granule};
  }
  template <class Inner>
  static std::optional<media_sums> media_bytes_of(counted<emulated<Inner>>& around) {
    return media_bytes_of(around.inner());
  }
  template <class Inner>
  static std::optional<media_sums> media_bytes_of(counted<Inner>& counts) {
    if (media::keeps_caches(counts.persistence())) return std::nullopt;
    const auto sums = counts.total();
    return media_sums{media::xpline_bytes, sums.device_lines_read * media::xpline_bytes,
                      sums.device_lines_written * media::xpline_bytes};
  }

  template <class Other>
  static void reset(Other& /*counts_nothing*/) {}
  template <class Inner>
  static void reset(counted<Inner>& counts) {
    counts.reset();
  }

  template <class Other>
  static std::optional<media::emulation_counts> emulation_of(Other& /*delays_nothing*/) {
    return std::nullopt;
  }
  template <class Inner>
  static std::optional<media::emulation_counts> emulation_of(emulated<Inner>& delays) {
    return delays.emulation();
  }
  template <class Inner>
  static std::optional<media::emulation_counts> emulation_of(counted<Inner>& around) {
    return emulation_of(around.inner());
  }
};

template <template <class> class Around, class... Arguments>
std::unique_ptr<chosen_medium> make_around(const subject_setup& setup, Arguments&&... arguments) {
  if (setup.medium.in_pool())
    return std::make_unique<behind_calls<Around<pmem>>>(std::forward<Arguments>(arguments)..., setup.medium.path,
                                                        options_of_pool(setup));
  return std::make_unique<behind_calls<Around<dram>>>(std::forward<Arguments>(arguments)..., options_of_dram(setup));
}

template <class Inner>
using plain = Inner;
template <class Inner>
using counted_emulated = counted<emulated<Inner>>;

}  // namespace

std::unique_ptr<chosen_medium> make_chosen_medium(const subject_setup& setup) {
  const medium_spec& asked = setup.medium;
  if (!asked.emulated() && !asked.counted) return make_around<plain>(setup);
  if (!asked.emulated())
    return asked.persistence ? make_around<counted>(setup, *asked.persistence) : make_around<counted>(setup);
  media::device_profile profile = setup.emulation->profile;
  profile.persistence = asked.persistence.value_or(profile.persistence);
  return asked.counted ? make_around<counted_emulated>(setup, profile) : make_around<emulated>(setup, profile);
}

}  // namespace pmlab::bench
