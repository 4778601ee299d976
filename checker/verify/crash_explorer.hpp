// Every state that a crash may leave, opened and checked: of the memory, and of the drives beside it if there are any.
// All hosts on the memory lose power at once.
//
// At every store, it makes the images that this store made possible: the line that was stored to with all its stores,
// every other unpersisted line with any prefix of its own, and every uncertain unit of a drive with any of its
// versions. At every write that is submitted to a drive it does the same. All of them if they are few; otherwise the
// most telling: all others behind, all ahead, one behind, one ahead, some at random; with drives also all lines ahead
// of all units, and the reverse. An image that was checked before, under the same history, is not checked again.
//
// An image is opened at another address, by code that shares nothing with the running one, and judged
// (image_judge.hpp). Some recoveries are crashed in turn, on the simulated machine.
#pragma once

#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/image_judge.hpp"
#include "checker/verify/seen_images.hpp"
#include "checker/verify/uncertain_places.hpp"
#include <pmlab/base/counters.hpp>
#include <pmlab/base/random.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

// A state that a crash has left.
struct kept_crash {
  std::vector<std::byte> bytes;
  std::shared_ptr<const simulator::block_table::extents> blocks;  // null: there was none
  std::size_t top = 0;
  std::vector<std::vector<std::byte>> drives;
  // After a kill: `bytes` is what the next process finds, this is durable, and the rest waits in the caches.
  std::vector<std::byte> durable{};
  bool is_repaired = false;  // its recovery stores
  std::vector<simulator::waiting_line> waiting{};
};

struct crash_counts {
  std::uint64_t points = 0;
  std::uint64_t states = 0;       // states that a crash may have left, examined
  std::uint64_t judged = 0;       // opened and examined; the others were equal to one of these
  std::uint64_t in_recovery = 0;  // judged, of crashes during a recovery
  // States among those judged, with drives, in which a crash lost stores to memory, writes to a drive, or both.
  std::uint64_t lost_lines = 0;
  std::uint64_t lost_units = 0;
  std::uint64_t lost_both = 0;
  // With the names of a campaign's record.
  static constexpr std::array counters{
      counter{&crash_counts::points, "crash_points"},   counter{&crash_counts::states, "crash_states"},
      counter{&crash_counts::judged, "judged"},         counter{&crash_counts::in_recovery, "in_recovery"},
      counter{&crash_counts::lost_lines, "lost_lines"}, counter{&crash_counts::lost_units, "lost_units"},
      counter{&crash_counts::lost_both, "lost_both"}};
};

class crash_explorer final : public simulator::persistence_observer {
 public:
  // Checks the images of `memory` and `drives`. `judge` opens them. On a violation `violated(text)` is called; it must
  // not return.
  crash_explorer(simulator::persistent_memory& memory, std::span<simulator::persistent_drive* const> drives,
                 image_judge& judge, crash_counts& counts, std::function<void(const std::string&)> violated);
  ~crash_explorer() override;

  // A run begins, on the judge's history: `seed` selects the samples.
  void begin(std::uint64_t seed, const crash_options& options);
  // The run has these hosts, which live as long as it. Runs of one explorer have one host, or all have several.
  void use(const simulator::hosts& hosts) noexcept { places_.use(hosts); }
  // Everything that a crash may leave now, because a promise was made.
  void promised();

  // See crash_options::only_keep_one.
  [[nodiscard]] const kept_crash& kept() const noexcept { return kept_; }
  // The same for recovery to open, until the next crash point.
  [[nodiscard]] crash_image& image_of_kept();

  // The explorer whose judge opens an image this moment, by code that is not instrumented; null: none does.
  [[nodiscard]] static crash_explorer* opening() noexcept;
  // In a copy of the process: opens and judges that image on the machine, whose steps are counted, and so ends. "" or
  // the violation; one that the machine finds goes to its handler. Adds the steps taken to `steps`.
  [[nodiscard]] std::string judge_in_copy(std::uint64_t& steps);
  // The moment of that crash, and the stores that it lost.
  [[nodiscard]] std::string circumstances() const;

  void after_store(const simulator::unpersisted_line& line) override;
  void after_fence() override;
  void after_cached_store(std::uint32_t line, unsigned host) override;
  void amid_publication() override;
  void after_submission(const simulator::persistent_drive& drive, std::uint32_t unit) override;

 private:
  class recovery_crasher;
  using choice = std::vector<std::uint32_t>;
  // The state that is being opened.
  struct opened_state {
    simulator::persistent_memory* memory = nullptr;
    std::span<simulator::persistent_drive* const> drives{};
    const uncertain_places* places = nullptr;
    std::span<const std::uint32_t> kept{};
    splitmix64 random{1};  // as it was before
  };

  // Draws samples aside: those of other moments, and so the seeds of runs, stay what they are.
  template <class Work>
  void draw_aside(Work&& work) {
    const splitmix64 before = random_;
    random_ = splitmix64(~random_.next());
    work();
    random_ = before;
  }
  [[nodiscard]] bool is_left_out() { return options_.points_one_in > 1 && !random_.one_in(options_.points_one_in); }
  void point(std::size_t fixed, std::size_t states);
  void visit_states(std::size_t fixed, std::size_t states);
  void visit(const choice& c);
  void count_losses(const choice& c);
  // Opens the image of `c` and checks it. "" or the violation.
  std::string examine(const choice& c, bool crash_recovery);
  std::string open_and_judge(crash_image& image, const opened_state& state);
  // "", or the result of `work`, which opens an image, or what it throws.
  template <class Work>
  std::string while_it_opens(const opened_state& state, Work&& work);
  [[nodiscard]] static std::string circumstances_of(const image_judge& judge, const uncertain_places& places,
                                                    std::span<const std::uint32_t> kept);
  void keep(const choice& c);
  // Whether its recovery changes the memory.
  [[nodiscard]] bool is_repaired(const choice& c);
  void report(choice c, std::string what);

  simulator::persistent_memory& memory_;
  std::span<simulator::persistent_drive* const> drives_;
  uncertain_places places_;
  image_judge& judge_;
  crash_options options_;
  crash_counts& counts_;
  std::function<void(const std::string&)> violated_;
  crash_image image_;
  std::unique_ptr<recovery_crasher> recovery_;
  splitmix64 random_{1};
  seen_images seen_;
  choice choice_;
  kept_crash kept_;
  opened_state opened_;
  std::uint64_t could_be_kept_ = 0;
  std::vector<std::byte> before_recovery_;
  bool is_aside_ = false;
};

}  // namespace pmlab::verify
