// A pmlab index on one of pmlab's media, as a subject.
#pragma once

#include "tools/catalogue/media_list.hpp"
#include "tools/catalogue/operation_loop.hpp"
#include "tools/catalogue/pool_files.hpp"
#include "tools/catalogue/subject.hpp"
#include <pmlab/erased/any_index.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace pmlab::bench {

template <class Index, class Medium>
class driver final : public subject {
 public:
  explicit driver(const subject_setup& setup) : setup_(setup) { open(); }

  [[nodiscard]] std::string medium() const override { return setup_.medium.text(); }
  [[nodiscard]] bool durable() const override { return Medium::durable; }

  work_done run(const work& w) override { return execute(open_->index, w, hooks{*medium_}); }

  space_used space() override {
    const indexes::index_stats shape = open_->index.stats();
    const std::uint64_t used = medium_->used().allocated_bytes;
    const std::uint64_t held = used - std::min(used, bytes_before_);
    if constexpr (Medium::durable) return {shape.entries, held, shape.dram_bytes};
    return {shape.entries, 0, held + shape.dram_bytes};
  }

  std::optional<access_sums> accesses() override {
    if constexpr (counting_medium<Medium>) {
      const auto sums = medium_->total();
      return access_sums{.operations = sums.operations,
                         .pm_lines_read = sums.lines_read,
                         .device_lines_read = sums.device_lines_read,
                         .device_lines_written = sums.device_lines_written,
                         .flushes = sums.lines_flushed,
                         .fences = sums.fences,
                         .lines_copied = sums.lines_copied,
                         .publications = sums.publications};
    }
    return std::nullopt;
  }

  void reset_accesses() override {
    if constexpr (counting_medium<Medium>) medium_->reset();
  }

  std::optional<emulation_sums> emulation() override {
    if constexpr (kind_of<Medium>.emulated) {
      const auto sums = emulator(*medium_).emulation();
      return emulation_sums{sums.waited_ns, sums.late_ns};
    }
    return std::nullopt;
  }

  // Counts are of an index by itself, and half of the media: they are not compiled twice.
  [[nodiscard]] erased::any_index* index() override {
    if constexpr (counting_medium<Medium>)
      return nullptr;
    else
      return &open_->shown;
  }

  void reopen() override {
    open_.reset();
    if constexpr (kind_of<Medium>.simulated) {
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
  struct not_erased {
    not_erased(Index& /*index*/, Medium& /*medium*/) {}
  };
  struct opened {
    explicit opened(Medium& m) : index(Index::open(m)), shown(index, m) {}
    Index index;
    [[no_unique_address]] std::conditional_t<counting_medium<Medium>, not_erased, erased::erased_index<Index, Medium>>
        shown;
  };

  // Media that count or charge want to know where an operation begins and ends.
  struct hooks {
    Medium& medium;
    void begin() const { media::begin_operation(medium); }
    void end() const { media::end_operation(medium); }
  };

  // The emulated medium, which a counting one may stand around.
  template <class M>
  static auto& emulator(M& medium) {
    if constexpr (counting_medium<M>)
      return medium.inner();
    else
      return medium;
  }

  // The pool, which other media may stand around.
  template <class M>
  static auto& pool_of(M& medium) {
    if constexpr (kind_of<M>.counted || kind_of<M>.emulated)
      return pool_of(medium.inner());
    else
      return medium;
  }

  void open() {
    medium_ = make_medium<Medium>(setup_);
    if constexpr (kind_of<Medium>.in_pool)
      if (setup_.pool_bytes == 0)
        refuse_pool_without(Index::layout_name, setup_.medium.path, pool_of(*medium_).roots());
    // What a pool holds already belongs to the index that it holds, if it was not made for this run.
    bytes_before_ = setup_.medium.in_pool() && setup_.pool_bytes == 0 ? 0 : medium_->used().allocated_bytes;
    open_.emplace(*medium_);
  }

  subject_setup setup_;
  std::unique_ptr<Medium> medium_;
  std::optional<opened> open_;
  std::uint64_t bytes_before_ = 0;
};

}  // namespace pmlab::bench
