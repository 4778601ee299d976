// Opens the states that crashes left, and judges them against the history of the run.
#pragma once

#include "checker/verify/crash_image.hpp"
#include <pmlab/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace pmlab::verify {

struct complete_options;

struct crash_options {
  std::size_t states_per_point = 64;     // if there are more
  std::size_t states_per_promise = 64;   // likewise, of the states that a crash may leave after an answer
  std::size_t points_one_in = 1;         // one in so many of the crash points is examined
  std::size_t work_after_recovery = 16;  // operations on every recovered index
  std::size_t long_work_one_in = 64;     // one in so many of the images: enough operations to split nodes
  std::size_t long_work = 300;
  std::size_t crash_recovery_one_in = 64;  // one in so many of the images
  bool remember_images = true;
  const complete_options* complete = nullptr;  // not null: every state of every point, and no sample
  bool nearly_full = false;      // recovered stores are filled, half emptied and filled again (nearly_full.hpp)
  bool only_keep_one = false;    // judge nothing, and keep one state of all, each with the same probability
  bool prefer_repaired = false;  // with it: a state whose recovery stores; of a store each does
  bool keep_caches = false;      // with it: the state of a process that is killed, whose stores are all visible
};

class image_judge {
 public:
  image_judge() = default;
  image_judge(const image_judge&) = delete;
  image_judge& operator=(const image_judge&) = delete;
  virtual ~image_judge() = default;

  // False: recovery needs the memory at its old place, so it happens in a crashed process.
  [[nodiscard]] virtual bool opens_images() const = 0;
  // Opens the image and judges it. "" or the violation. Throws if recovery does.
  virtual std::string judge(crash_image& image, const crash_options& options, splitmix64& random) = 0;
  // The same in a crashed process.
  virtual std::string judge_here(const crash_options& options, splitmix64& random) = 0;
  // The same as `judge` by instrumented code, on the memory and the drives that the machine uses: so its steps are
  // counted.
  virtual std::string judge_on_machine(const crash_options& options, splitmix64& random) = 0;
  // Opens the image, and closes it. Throws if recovery does. See crash_options::prefer_repaired.
  virtual void open_and_close(crash_image& /*image*/) {}
  // Recovery on the memory and the drives that the machine observes. Calls `opened` when it is open.
  virtual void recover_on_machine(const std::function<void()>& opened) = 0;

  // Grows whenever something is promised, or may newly have happened.
  [[nodiscard]] virtual std::uint64_t history_version() const = 0;
  // Keeps the history of this moment, behind which a round goes on.
  virtual void keep_history() {}
  // The operations under way, as text; "": none.
  [[nodiscard]] virtual std::string under_way() const = 0;
};

}  // namespace pmlab::verify
