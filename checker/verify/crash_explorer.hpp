// Every state that a crash may leave, opened and checked.
//
// At every store, it makes the images that this store made possible: the line that was stored to with all its stores,
// every other unpersisted line with any prefix of its own. All of them if they are few; otherwise the most telling: all
// others behind, all ahead, one behind, one ahead, and some at random. An image that was checked before, under the same
// history, is not checked again.
//
// An image is opened at another address, by an index that shares nothing with the running one, and must show: every
// acknowledged operation, those under way completely or not at all, no key twice, scans sorted and complete, a clean
// check(), no leaked block; and it must remain usable. Some recoveries are crashed in turn, on the simulated machine.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/history_model.hpp"
#include "checker/verify/image_medium.hpp"
#include "checker/verify/seen_images.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::verify {

struct crash_options {
  std::size_t states_per_point = 64;     // if there are more
  std::size_t states_per_promise = 64;   // likewise, of the states that a crash may leave after an answer
  std::size_t points_one_in = 1;         // of the crash points, one in so many is examined
  std::size_t work_after_recovery = 16;  // operations on every recovered index
  std::size_t long_work_one_in = 64;     // of the images: enough operations to split nodes
  std::size_t long_work = 300;
  std::size_t crash_recovery_one_in = 64;  // of the images
  bool remember_images = true;
  bool only_keep_one = false;  // judge nothing, and keep one state of all, each with the same probability
};

// A state that a crash has left.
struct kept_crash {
  std::vector<std::byte> bytes;
  std::shared_ptr<const simulator::block_table::extents> blocks;  // null: there was none
  std::size_t top = 0;
};

struct crash_counts {
  std::uint64_t points = 0;
  std::uint64_t states = 0;       // states that a crash may have left, examined
  std::uint64_t judged = 0;       // opened and examined; the others were equal to one of these
  std::uint64_t in_recovery = 0;  // judged, of crashes during a recovery
};

class crash_explorer final : public simulator::persistence_observer {
 public:
  // Checks the images of `memory`. `kind` opens them. On a violation `violated(text)` is called; it must not return.
  crash_explorer(const subject& kind, simulator::persistent_memory& memory, crash_counts& counts,
                 std::function<void(const std::string&)> violated);
  ~crash_explorer() override;

  // A run begins: `p` is its history, and `seed` selects the samples.
  void begin(history_model* p, std::uint64_t seed, const crash_options& options);
  // Everything that a crash may leave now, because a promise was made.
  void promised();

  // See crash_options::only_keep_one.
  [[nodiscard]] const kept_crash& kept() const noexcept { return kept_; }
  // The entries of the index that is opened on it.
  [[nodiscard]] std::vector<indexes::entry> entries_of_kept();

  void after_store(const simulator::unpersisted_line& line) override;
  void after_fence() override;

 private:
  class recovery_crasher;

  void point(std::size_t fixed, std::size_t states);
  void visit(const std::vector<std::uint32_t>& choice);
  // Opens the image of `choice` and checks it. "" or the violation.
  std::string examine(const std::vector<std::uint32_t>& choice, bool crash_recovery);
  std::string open_and_judge(image_medium& image);
  // `medium`: the medium of its blocks; null: unknown.
  std::string judge(target& index, image_medium* medium);
  std::string work_on(target& index, image_medium* medium);
  std::string load_into(target& index);
  [[nodiscard]] std::string judge_work(target& index);
  static std::string judge_blocks(target& index, const image_medium* medium);
  std::string read_back(target& index);
  std::string search_for_all(target& index);
  [[nodiscard]] bool sampled() const;
  void keep(const std::vector<std::uint32_t>& choice);
  void report(std::vector<std::uint32_t> choice, std::string what);

  const subject& kind_;
  simulator::persistent_memory& memory_;
  crash_options options_;
  crash_counts& counts_;
  std::function<void(const std::string&)> violated_;
  history_model* history_ = nullptr;
  image_medium image_;
  std::unique_ptr<recovery_crasher> recovery_;
  splitmix64 random_{1};
  seen_images seen_;
  std::vector<std::uint32_t> choice_;
  std::vector<indexes::entry> entries_;
  std::vector<indexes::entry> again_;
  std::vector<std::pair<std::uint64_t, key_state>> model_;
  std::vector<std::uint64_t> worked_keys_;
  std::vector<std::uint64_t> searched_;
  std::vector<std::optional<std::uint64_t>> found_;
  kept_crash kept_;
  std::uint64_t could_be_kept_ = 0;
};

}  // namespace pmlab::verify
