// The progress line of a run: its position, and the time left.
#pragma once

#include "bench/support/ticker.hpp"
#include "bench/support/time_left.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::bench {

// On a terminal one line that is rewritten; elsewhere a line for each pass of a run, and one from time to time within a
// long one. Quiet: nothing. Writes to stderr.
//
// One thread calls all functions but did(), which any thread may call.
class progress {
 public:
  enum class style : std::uint8_t { quiet, lines, terminal };
  explicit progress(style s) : style_(s), last_line_(real_seconds()) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { clear(); }

  // Quiet if requested; otherwise by the kind of stderr.
  [[nodiscard]] static style style_of_stderr(bool quiet);

  // While it lives, the line moves by itself. Afterwards it is gone.
  class moving {
   public:
    explicit moving(progress& shown);
    moving(const moving&) = delete;
    moving& operator=(const moving&) = delete;
    ~moving();

   private:
    progress& shown_;
    std::optional<ticker> ticks_;
  };

  // A part of the run begins.
  void pass(const std::string& what);

  // Steps, as time_left has them. `what` is the text of a step that begins, `total` how often did() will count in it;
  // 0: not known.
  void expect(std::string_view part, std::string_view kind, double weight, bool in_seconds = false);
  void skip(std::string_view part, std::string_view kind, double weight);
  void begin(std::string_view part, std::string_view kind, double weight, const std::string& what, std::uint64_t total);
  void did(std::uint64_t count) noexcept { done_.fetch_add(count, std::memory_order_relaxed); }
  void end();

  // For work that knows itself how far it is: shows this now, if it is time to. `seconds` left: nothing: not known.
  void show(std::string_view what, std::optional<double> seconds);
  void clear();

 private:
  class changing;  // holds the ticks off

  void tick() noexcept;
  [[nodiscard]] bool is_time(double now) noexcept;
  void write_line(std::string_view what, std::optional<double> share, std::optional<double> seconds) noexcept;

  style style_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::string pass_;
  std::string step_;
  time_left left_;
  std::atomic<std::uint64_t> done_{0};
  std::uint64_t total_ = 0;
  double last_line_;
  double patience_ = 0;  // until the next line
  bool line_is_up_ = false;
};

}  // namespace pmlab::bench
