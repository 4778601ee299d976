// The progress line of a run: its position, and the time left.
#include "bench/support/progress.hpp"
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

// Seconds between two lines where none is rewritten: from the first one to the longest.
constexpr double first_patience = 5;
constexpr double longest_patience = 60;
constexpr double terminal_patience = 0.15;

constexpr std::string_view erase_line = "\r\x1b[K";

constexpr std::size_t longest_line = 400;

// A line that does not fit would not be erased whole.
std::size_t width_of_terminal() noexcept {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? std::min<std::size_t>(size.ws_col - 1U, longest_line) : longest_line;
}

// Text that grows without an allocation; longer text is cut off.
class short_text {
 public:
  short_text& add(std::string_view more) noexcept {
    const std::size_t count = std::min(more.size(), text_.size() - size_);
    std::copy_n(more.data(), count, text_.data() + size_);
    size_ += count;
    return *this;
  }
  short_text& add_number(std::string_view before, unsigned number, std::string_view after) noexcept {
    std::array<char, 12> digits;
    return add(before)
        .add({digits.data(), fmt::format_to_n(digits.data(), digits.size(), "{}", number).size})
        .add(after);
  }
  short_text& add_time_left(double seconds) noexcept {
    size_ += write_time_left(text_.data() + size_, text_.size() - size_, seconds);
    return *this;
  }
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, longest_line + 112> text_;
  std::size_t size_ = 0;
};

}  // namespace

class progress::changing {
 public:
  explicit changing(progress& p) : progress_(p) {
    for (sync::backoff wait; progress_.busy_.test_and_set(std::memory_order_acquire);) wait.pause();
  }
  changing(const changing&) = delete;
  changing& operator=(const changing&) = delete;
  ~changing() { progress_.busy_.clear(std::memory_order_release); }

 private:
  progress& progress_;
};

progress::style progress::style_of_stderr(bool quiet) {
  if (quiet) return style::quiet;
  return ::isatty(STDERR_FILENO) == 1 ? style::terminal : style::lines;
}

progress::moving::moving(progress& shown) : shown_(shown) {
  if (shown.style_ == style::quiet) return;
  ticks_.emplace([](void* p) { static_cast<progress*>(p)->tick(); }, &shown);
}

progress::moving::~moving() {
  ticks_.reset();
  shown_.clear();
}

void progress::clear() {
  if (!line_is_up_) return;
  static_cast<void>(!::write(STDERR_FILENO, erase_line.data(), erase_line.size()));
  line_is_up_ = false;
}

void progress::pass(const std::string& what) {
  const changing held(*this);
  pass_ = what;
  step_.clear();
  patience_ = first_patience;
  last_line_ = real_seconds();
  if (style_ == style::lines) fmt::print(stderr, "pmlab: {}\n", what);
}

void progress::expect(std::string_view part, std::string_view kind, double weight, bool in_seconds) {
  const changing held(*this);
  left_.expect(part, kind, weight, in_seconds);
}

void progress::skip(std::string_view part, std::string_view kind, double weight) {
  const changing held(*this);
  left_.skip(part, kind, weight);
}

void progress::begin(std::string_view part, std::string_view kind, double weight, const std::string& what,
                     std::uint64_t total) {
  const changing held(*this);
  left_.begin(part, kind, weight, real_seconds());
  step_ = what;
  total_ = total;
  done_.store(0, std::memory_order_relaxed);
}

void progress::end() {
  const changing held(*this);
  left_.end(real_seconds());
  total_ = 0;
}

// A line that moves is due at each tick, other lines less and less often.
bool progress::is_time(double now) noexcept {
  const bool terminal = style_ == style::terminal;
  if (style_ == style::quiet || now - last_line_ < (terminal ? terminal_patience : patience_)) return false;
  last_line_ = now;
  patience_ = std::clamp(2 * patience_, first_patience, longest_patience);
  return true;
}

void progress::tick() noexcept {
  if (busy_.test_and_set(std::memory_order_acquire)) return;
  if (const double now = real_seconds(); is_time(now)) {
    std::optional<double> share;
    if (total_ != 0)
      share = std::min(1.0, static_cast<double>(done_.load(std::memory_order_relaxed)) / static_cast<double>(total_));
    write_line(step_, share, left_.seconds(now, share));
  }
  busy_.clear(std::memory_order_release);
}

void progress::show(std::string_view what, std::optional<double> seconds) {
  if (is_time(real_seconds())) write_line(what, std::nullopt, seconds);
}

// May run in a signal handler: no allocation, no stdio.
void progress::write_line(std::string_view what, std::optional<double> share, std::optional<double> seconds) noexcept {
  const bool terminal = style_ == style::terminal;
  short_text end;
  if (share) end.add_number(" ", static_cast<unsigned>(100 * *share), " %");
  if (seconds) end.add(", ").add_time_left(*seconds);
  short_text line;
  line.add(terminal ? erase_line : "pmlab: ");
  // Only the beginning of "2 threads, repeat 1 of 3: read, insert": the step gives the position in the rest.
  const std::string_view pass = what.empty() ? pass_ : std::string_view(pass_).substr(0, pass_.find(": "));
  const std::size_t room = terminal ? width_of_terminal() : longest_line;
  const std::size_t others = end.text().size() + what.size() + 2;
  // Text that does not fit is cut at the beginning: the end has the news.
  line.add(pass.substr(0, room - std::min(room, others)));
  if (!pass.empty() && !what.empty()) line.add(": ");
  line.add(what.substr(0, room - std::min(room, others - what.size()))).add(end.text()).add(terminal ? "" : "\n");
  static_cast<void>(!::write(STDERR_FILENO, line.text().data(), line.text().size()));
  line_is_up_ = terminal;
}

}  // namespace pmlab::bench
