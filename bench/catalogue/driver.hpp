// A pmlab index on one of pmlab's media, as a subject.
#pragma once

#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/media_list.hpp"
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/pool_files.hpp"
#include "bench/catalogue/subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "checker/simulator/machine_counts.hpp"
#endif

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace pmlab::bench {

// Where an index has one host. A simulated machine sees the driver's code: it is final, and has nothing for this.
struct no_other_hosts {};

// `OtherHosts`: what the other hosts of a shared index have open (bench/catalogue/register_shared_index.hpp).
template <class Index, class Medium, class OtherHosts = no_other_hosts>
class driver final : public subject {
 public:
  explicit driver(const subject_setup& setup) : setup_(setup) {
    open();
    if constexpr (has_other_hosts) other_hosts_.join(*medium_);
  }

  [[nodiscard]] std::string medium() const override { return setup_.medium.text(); }
  [[nodiscard]] bool durable() const override { return media::is_durable(*medium_); }

  work_done run(const work& w) override {
    if constexpr (has_other_hosts)
      if (Index* const joined = other_hosts_.index_here()) return execute(*joined, w, hooks{*medium_});
    return execute(open_->index, w, hooks{*medium_});
  }

  space_used space() override {
    const indexes::index_stats shape = open_->index.stats();
    const std::uint64_t used = medium_->used().allocated_bytes;
    const std::uint64_t held = used - std::min(used, bytes_before_);
    if (durable()) return {shape.entries, held, shape.dram_bytes};
    return {shape.entries, 0, held + shape.dram_bytes};
  }

  std::optional<media::counts> accesses() override {
    if constexpr (traits::watched) return medium_->accesses();
    return std::nullopt;
  }
  void reset_accesses() override {
    if constexpr (traits::watched) medium_->reset_accesses();
    persists_before_ = persists_of_machine();
    media_bytes_before_ = media_bytes_so_far().value_or(media_sums{});
  }
  std::optional<persist_sums> persists() override {
    if constexpr (!traits::simulated) return subject::persists();
    const persist_sums now = persists_of_machine();
    return persist_sums{now.flushes - persists_before_.flushes, now.fences - persists_before_.fences};
  }
  std::optional<media_sums> media_bytes() override {
    std::optional<media_sums> sums = media_bytes_so_far();
    if (!sums) return sums;
    // By hand: a simulated machine sees this code, and a list of counters would be in its caches.
    sums->bytes_read -= media_bytes_before_.bytes_read;
    sums->bytes_written -= media_bytes_before_.bytes_written;
    return sums;
  }
  [[nodiscard]] std::optional<media::persistence_domain> persistence() const override {
#if defined(PMLAB_SIMULATED)
    if constexpr (traits::simulated) return static_cast<media::persistence_domain>(pmlab_machine_persistence());
#endif
    if constexpr (requires { medium_->persistence(); }) return medium_->persistence();
    return std::nullopt;
  }
  std::optional<media::emulation_counts> emulation() override {
    if constexpr (traits::watched) return medium_->emulation();
    return std::nullopt;
  }

  // Counts are of an index by itself.
  [[nodiscard]] erased::any_index* index() override { return setup_.medium.counted ? nullptr : &open_->shown; }

  void reopen() override {
    open_.reset();
    if constexpr (traits::simulated) {
      // Its memory is in no file, and stays.
      const hooks timed{*medium_};
      timed.begin();
      open_.emplace(*medium_);
      timed.end();
      return;
    }
    medium_.reset();
    setup_.pool_bytes = 0;
    const std::uint64_t before = bytes_before_;
    open();
    bytes_before_ = before;
  }

 private:
  using traits = medium_traits<Medium>;
  static constexpr bool has_other_hosts = !std::is_same_v<OtherHosts, no_other_hosts>;

  struct opened {
    explicit opened(Medium& m) : index(Index::open(m)), shown(index, m) {}
    Index index;
    erased::erased_index<Index, Medium> shown;
  };

  // Media that count or charge need to know the begin and end of operations.
  struct hooks {
    Medium& medium;
    void begin() const { media::begin_operation(medium); }
    void end() const { media::end_operation(medium); }
  };

  // The persists of all indexes: phases run one after the other.
  [[nodiscard]] static persist_sums persists_of_machine() noexcept {
#if defined(PMLAB_SIMULATED)
    return {pmlab_machine_flushes(), pmlab_machine_fences()};
#else
    return {};
#endif
  }

  // The media bytes of all indexes on a simulated machine; those of an emulated medium since it was made.
  [[nodiscard]] std::optional<media_sums> media_bytes_so_far() {
#if defined(PMLAB_SIMULATED)
    if constexpr (traits::simulated)
      return media_sums{pmlab_machine_granule_bytes(), pmlab_machine_media_bytes_read(),
                        pmlab_machine_media_bytes_written()};
#endif
    if constexpr (traits::watched) return medium_->media_bytes();
    return std::nullopt;
  }

  void open() {
    medium_ = traits::make(setup_);
    media_bytes_before_ = {};
    const bool has_pool = setup_.medium.in_pool() && setup_.pool_bytes == 0;
    if constexpr (traits::has_roots)
      if (has_pool) refuse_pool_without(Index::layout_name, setup_.medium.path, medium_->roots());
    // The contents of an existing pool belong to its index, if the pool was not made for this run.
    bytes_before_ = has_pool ? 0 : medium_->used().allocated_bytes;
    open_.emplace(*medium_);
  }

  subject_setup setup_;
  std::unique_ptr<Medium> medium_;
  std::optional<opened> open_;
  [[no_unique_address]] OtherHosts other_hosts_;
  std::uint64_t bytes_before_ = 0;
  persist_sums persists_before_;
  media_sums media_bytes_before_;
};

}  // namespace pmlab::bench
