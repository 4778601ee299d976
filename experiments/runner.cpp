// Runs cells, each as a child process.
#include "experiments/runner.hpp"
#include "tools/support/shell_form.hpp"
#include <pmlab/base/error.hpp>
#include "claims/child.hpp"
#include "experiments/manifest.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::experiments {
namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

constexpr std::string_view pools_prefix = "pmlab-run-";
constexpr std::string_view complaint = "pmlab: error: ";

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

void replace_all(std::string& text, std::string_view what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// Virtual time and counts are the same whatever else runs here.
bool may_share_the_machine(const cell& c) {
  const std::string medium = value_of(c.words, "--medium");
  return medium.starts_with("simulated:") || medium.starts_with("counted:");
}

// The last complaint of a log; if there is none, its last line.
std::string complaint_of(const fs::path& log) {
  std::ifstream file(log);
  std::string last, found;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(complaint)) found = line.substr(complaint.size());
    if (!line.empty()) last = line;
  }
  return found.empty() ? last : found;
}

std::string duration_text(double seconds) {
  constexpr double minute = 60;
  return seconds < 2 * minute ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / minute);
}

class runner {
 public:
  runner(const std::vector<experiment>& experiments, const std::vector<cell>& cells, const run_settings& s)
      : settings_(s), noted_(open_folder(s)) {
    noted_.describe(experiments);
    for (const cell& c : cells) {
      if (noted_.has(c)) {
        ++summary_.kept;
        continue;
      }
      (may_share_the_machine(c) ? shared_ : alone_).push_back(&c);
      weight_left_ += c.weight;
    }
    // The longest ones first, so that at the end no CPU waits long for another one.
    std::stable_sort(shared_.begin(), shared_.end(),
                     [](const cell* a, const cell* b) { return a->weight > b->weight; });
    total_ = shared_.size() + alone_.size();
    if (summary_.kept != 0)
      say(fmt::format("{} cells are there already, by the same build and arguments", summary_.kept));
  }

  run_summary run() {
    if (total_ == 0) return summary_;
    const claims::signals_for_children until_all_are_done;
    remove_pools();
    const fs::path pools = settings_.pools / fmt::format("{}{}", pools_prefix, ::getpid());
    noted_.set_pools(pools.string());
    noted_.write();
    start_ = clock::now();
    run_queue(shared_, std::max(1U, settings_.jobs));
    run_queue(alone_, 1);
    remove_pools();
    if (unnoted_ != nullptr) std::rethrow_exception(unnoted_);
    noted_.set_pools({});
    noted_.write();
    if (const int signal = claims::stop_signal(); signal != 0)
      throw claims::interrupted(signal, "interrupted; what is done is in " + settings_.folder.string(),
                                "give --resume to go on");
    return summary_;
  }

 private:
  static manifest open_folder(const run_settings& s) {
    std::error_code failure;
    const bool used = fs::exists(s.folder / "raw", failure) || fs::exists(s.folder / "manifest.json", failure);
    if (used && !s.resume)
      throw error(fmt::format("{} holds results already", s.folder.string()),
                  "give --out another folder, or --resume to go on with what is missing");
    fs::create_directories(s.folder / "raw", failure);
    if (failure || ::access(s.folder.c_str(), W_OK) != 0)
      throw error(fmt::format("cannot write to {}", s.folder.string()), "give --out a folder that can be written to");
    return s.resume ? manifest::resume(s.folder, s.scale, s.command) : manifest::begin(s.folder, s.scale, s.command);
  }

  void say(const std::string& line) const {
    if (settings_.quiet) return;
    fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
  }

  // Those of a run that was killed, too; nothing else, whatever the manifest says.
  void remove_pools() const {
    const fs::path pools = noted_.pools();
    std::error_code ignored;
    if (pools.filename().string().starts_with(pools_prefix)) fs::remove_all(pools, ignored);
  }

  void run_queue(const std::vector<const cell*>& queue, unsigned workers) {
    std::size_t next = 0;
    const auto work = [&] {
      for (;;) {
        const cell* c = nullptr;
        {
          const std::lock_guard guard(lock_);
          if (next == queue.size() || unnoted_ != nullptr || claims::stop_signal() != 0) return;
          c = queue[next++];
        }
        run_cell(*c);
      }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < workers && i < queue.size(); ++i) others.emplace_back(work);
    work();
    for (std::thread& t : others) t.join();
  }

  void run_cell(const cell& c) {
    const clock::time_point begun = clock::now();
    ending end;
    try {
      end = execute(c);
    } catch (const claims::interrupted&) {
      // The cell is not noted, so that --resume runs it again.
      return;
    } catch (const std::exception& e) {
      end = {1, e.what(), 0};
    }
    end.seconds = seconds_since(begun);
    const std::lock_guard guard(lock_);
    try {
      noted_.add(c, end);
    } catch (...) {
      // A full device, say: run() ends with it, after the cells of the other threads.
      if (unnoted_ == nullptr) unnoted_ = std::current_exception();
      return;
    }
    report(c, end);
  }

  ending execute(const cell& c) {
    const fs::path results = settings_.folder / "raw" / (c.name + ".json");
    const fs::path log = settings_.folder / "log" / (c.name + ".txt");
    fs::create_directories(results.parent_path());
    fs::create_directories(log.parent_path());
    std::error_code ignored;
    fs::remove(results, ignored);
    const fs::path pools = fs::path(noted_.pools()) / c.experiment;
    std::vector<std::string> words = {settings_.program};
    for (std::string word : c.words) {
      if (word.find("{pool}") != std::string::npos) fs::create_directories(pools);
      replace_all(word, "{pool}", (pools / "pool").string());
      if (word.find("{source}") != std::string::npos && settings_.source.empty())
        throw error("this cell needs pmlab's source tree", "run a pmlab that was built there");
      replace_all(word, "{source}", settings_.source.string());
      words.push_back(std::move(word));
    }
    words.insert(words.end(), {"--quiet", "--json", results.string()});
    const int status = claims::run_program(words, log.string(), claims::complaints::to_output);
    fs::remove_all(pools, ignored);
    return {status, status == 0 ? std::string() : complaint_of(log), 0};
  }

  // How somebody runs the cell without the rest.
  [[nodiscard]] std::string alone(const cell& c) const {
    std::string text = shell_form(c.words);
    replace_all(text, "{pool}", (settings_.pools / "pmlab.pool").string());
    replace_all(text, "{source}", settings_.source.string());
    return text;
  }

  // Weights are guesses; what is left is guessed from how long the guesses took so far.
  void report(const cell& c, const ending& end) {
    ++ended_;
    weight_left_ -= c.weight;
    weight_done_ += c.weight;
    const std::string left =
        weight_left_ < 1 ? std::string()
                         : ", about " + duration_text(seconds_since(start_) * weight_left_ / weight_done_) + " left";
    if (end.status == 0) {
      ++summary_.done;
      say(fmt::format("[{}/{}] {}: {:.0f} s{}", ended_, total_, c.name, end.seconds, left));
      return;
    }
    ++summary_.failed;
    fmt::print(stderr, "[{}/{}] {}: FAILED with status {}{}\n    {}\n    alone: {}\n", ended_, total_, c.name,
               end.status, left, end.message, alone(c));
    std::fflush(stderr);
  }

  const run_settings& settings_;
  manifest noted_;
  std::vector<const cell*> shared_, alone_;
  std::mutex lock_;             // of everything below, and of noted_
  std::exception_ptr unnoted_;  // why the manifest could not be written
  run_summary summary_;
  std::size_t ended_ = 0, total_ = 0;
  double weight_left_ = 0, weight_done_ = 0;
  clock::time_point start_;
};

}  // namespace

run_summary run_cells(const std::vector<experiment>& experiments, const std::vector<cell>& cells,
                      const run_settings& settings) {
  return runner(experiments, cells, settings).run();
}

}  // namespace pmlab::experiments
