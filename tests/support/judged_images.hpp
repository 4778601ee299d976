// Images of crashes at every event of a piece of work, each opened and judged: for tests whose work is not a
// crash_scenario's.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/crash_medium.hpp"
#include "support/crash_scenario.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {

// From construction until `verdict`, the crash images of `machine` are checked at each of its events.
class judged_images {
 public:
  // `judge(image)` opens a medium that holds an image, and returns the violation; "": none. An error that leaves
  // it is wrong, too. It is called no more after the first violation.
  template <class Judge>
  judged_images(crash_medium& machine, std::uint64_t seed, Judge judge) : machine_(machine), source_(seed) {
    machine_.track([this, judge = std::move(judge)] {
      constexpr std::size_t at_each_event = 6;
      for_each_image(machine_.unpersisted_lines(), at_each_event, source_, [&](const std::vector<std::size_t>& choice) {
        if (!violation_.empty()) return;
        ++images_;
        image_.restore(machine_, choice);
        machine_.hide();
        try {
          violation_ = judge(image_);
        } catch (const error& e) {
          violation_ = e.what();
        }
        machine_.show();
      });
    });
  }
  judged_images(const judged_images&) = delete;
  judged_images& operator=(const judged_images&) = delete;
  ~judged_images() { machine_.stop_tracking(); }

  [[nodiscard]] bool has_violation() const noexcept { return !violation_.empty(); }

  // The first misuse of the medium, or the first violation, or "clean: " and how many images were judged.
  [[nodiscard]] std::string verdict() {
    machine_.stop_tracking();
    for (const std::string& m : machine_.misuses()) return m;
    return violation_.empty() ? "clean: " + std::to_string(images_) + " images" : violation_;
  }

 private:
  crash_medium& machine_;
  crash_medium image_;
  random source_;
  std::string violation_;
  std::size_t images_ = 0;
};

}  // namespace pmlab::tests
