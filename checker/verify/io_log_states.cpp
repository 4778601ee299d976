// The states that a crash of a recorded run may have left.
#include "checker/verify/io_log_states.hpp"

#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/verify/check_command.hpp"
#include "checker/verify/choices.hpp"
#include "checker/verify/elapsed.hpp"
#include "checker/verify/seen_images.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/io_log.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

using clock = std::chrono::steady_clock;
using simulator::persistent_drive;
using simulator::sector_bytes;

// A replay holds the device in memory, twice.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

// Zeros are holes.
void write_image(const std::string& path, std::span<const std::byte* const> sectors) {
  const descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const auto fail = [&] {
    throw error("cannot write a crash state to " + path + ": " + std::strerror(errno),
                "make room there, or name another folder by TMPDIR");
  };
  if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(sectors.size() * sector_bytes)) != 0) fail();
  static constexpr std::array<std::byte, sector_bytes> zeros{};
  for (std::size_t s = 0; s < sectors.size(); ++s) {
    if (std::memcmp(sectors[s], zeros.data(), sector_bytes) == 0) continue;
    const auto at = static_cast<off_t>(s * sector_bytes);
    if (::pwrite(file.get(), sectors[s], sector_bytes, at) != static_cast<ssize_t>(sector_bytes)) fail();
  }
}

class replay {
 public:
  replay(const io_log_options& options, const std::function<std::string(const io_log_state&)>& check,
         const std::function<void(const io_log_result&)>& progress)
      : options_(options),
        check_(check),
        progress_(progress),
        reader_(options.log),
        drive_(possible(reader_.shape())),
        queue_(drive_),
        sectors_(drive_.sectors()),
        image_(".img"),
        random_(options.seed) {
    if (!options.base.empty()) load_base();
    drive_.begin(options.seed);
  }

  io_log_result run() {
    while (!result_.found) {
      std::optional<blocks::io_log_reader::entry> e = reader_.next();
      if (!e) break;
      take(*e);
      result_.log_bytes = reader_.position();
      if (seconds_since(start_) > options_.budget_seconds) {
        result_.whole_log = false;
        break;
      }
    }
    result_.cut_off = reader_.cut_off();
    if (result_.cut_off && !options_.may_be_cut_off)
      throw error("the log " + options_.log + " ends in the middle of a record",
                  "record it again; or, if its program was killed then, give --cut-off for the records before");
    if (!result_.found && result_.whole_log) point();
    result_.seconds = seconds_since(start_);
    return std::move(result_);
  }

 private:
  const blocks::geometry& possible(const blocks::geometry& g) const {
    if (g.bytes() > most_bytes)
      throw error("the log " + options_.log + " is of a device of " + std::to_string(g.bytes()) + " bytes",
                  "record a device of at most " + std::to_string(most_bytes) + " bytes");
    return g;
  }

  void load_base() {
    std::error_code failed;
    const std::uint64_t bytes = std::filesystem::file_size(options_.base, failed);
    if (failed) throw error("cannot read " + options_.base + ": " + failed.message(), "check the path");
    if (bytes != drive_.shape().bytes())
      throw error(options_.base + " has " + std::to_string(bytes) + " bytes, and the log " + options_.log +
                      " is of a device of " + std::to_string(drive_.shape().bytes()),
                  "give the image of the device that was recorded, of before the log");
    std::ifstream file(options_.base, std::ios::binary);
    std::vector<char> content(bytes);
    file.read(content.data(), static_cast<std::streamsize>(bytes));
    if (!file) throw error("cannot read " + options_.base, "check its permissions");
    drive_.restore(reinterpret_cast<const std::byte*>(content.data()));
  }

  void take(blocks::io_log_reader::entry& e) {
    switch (e.record.event) {
      case blocks::io_event::submitted: submitted(e); break;
      case blocks::io_event::completed: completed(e.record); break;
      case blocks::io_event::mark:
        ++result_.marks;
        marks_.emplace_back(e.text());
        for (const std::uint32_t unit : drive_.uncertain())
          for (const simulator::unit_version& v : drive_.unit(unit).versions)
            if (v.of->completed != 0) unflushed_.insert_or_assign(v.of->submitted, true);
        result_.unflushed = unflushed_.size();
        point();
        break;
    }
  }

  void submitted(blocks::io_log_reader::entry& e) {
    const blocks::io_record& r = e.record;
    if (r.what == blocks::operation::read) return;
    const blocks::geometry& g = drive_.shape();
    const bool beyond = r.first >= g.blocks || g.blocks - r.first < r.count || r.count == 0;
    const bool other = blocks::writes(r.what) && r.data_bytes != std::size_t{r.count} * g.block_bytes;
    if ((beyond || other) && r.what != blocks::operation::flush) throw inconsistent("a request beyond its device");
    if (in_flight_.contains(r.id)) throw inconsistent("two requests of one number in flight");
    result_.writes += blocks::writes(r.what) ? 1 : 0;
    result_.flushes += r.what == blocks::operation::flush ? 1 : 0;
    std::vector<std::byte>& data = in_flight_[r.id];
    data = std::move(e.data);
    blocks::request asked;
    asked.what = r.what;
    asked.first = r.first;
    asked.count = r.count;
    asked.data = data.data();
    asked.tag = r.id;
    drive_.submit(queue_, asked, nullptr);
  }

  void completed(const blocks::io_record& r) {
    if (r.what == blocks::operation::read) return;
    const auto place = in_flight_.find(r.id);
    if (place == in_flight_.end()) throw inconsistent("the completion of a request that was not submitted");
    if (r.error != 0) {
      drive_.fail(queue_, r.id);
    } else {
      const bool makes_durable = r.what == blocks::operation::flush || r.what == blocks::operation::write_durable ||
                                 !drive_.shape().volatile_cache;
      if (makes_durable) point();
      drive_.complete(queue_, r.id);
    }
    in_flight_.erase(place);
    queue_.done.clear();
  }

  [[nodiscard]] error inconsistent(const std::string& what) const {
    return {"the log " + options_.log + " holds " + what + ", before byte " + std::to_string(reader_.position()),
            "it is not the log of one device from its beginning on: record it again"};
  }

  void point() {
    ++result_.points;
    const std::vector<std::uint32_t>& units = drive_.uncertain();
    for_each_choice(
        choice_, units.size(), 0, nothing_fixed, options_.states_per_point, random_,
        [&](std::size_t i) { return static_cast<std::uint32_t>(drive_.unit(units[i]).versions.size()); },
        [&](const std::vector<std::uint32_t>& c) { visit(c); });
    if (progress_) progress_(result_);
  }

  void visit(const std::vector<std::uint32_t>& c) {
    if (result_.found || seconds_since(start_) > options_.budget_seconds) return;
    ++result_.states;
    std::uint64_t hash = drive_.durable_hash();
    for (std::size_t i = 0; i < c.size(); ++i)
      if (c[i] != 0) hash = drive_.hash_with(hash, drive_.uncertain()[i], c[i]);
    if (!seen_.insert(mix_bits(hash + (marks_.size() + 1) * golden_ratio))) return;
    ++result_.checked;
    if (!check_) return;
    if (std::string wrong = judge(c); !wrong.empty()) report(c, std::move(wrong));
  }

  std::string judge(const std::vector<std::uint32_t>& c) {
    drive_.find_image(sectors_, c);
    write_image(image_.path(), sectors_);
    return check_({image_.path(), marks_});
  }

  // Minimizes the loss, and keeps the state.
  void report(std::vector<std::uint32_t> c, std::string what) {
    const std::vector<std::uint32_t>& units = drive_.uncertain();
    constexpr std::size_t patience = 200;
    for (std::size_t i = 0; i < std::min(c.size(), patience); ++i) {
      const auto most = static_cast<std::uint32_t>(drive_.unit(units[i]).versions.size());
      if (c[i] == most) continue;
      std::vector<std::uint32_t> less = c;
      less[i] = most;
      if (std::string wrong = judge(less); !wrong.empty()) {
        c = std::move(less);
        what = std::move(wrong);
      }
    }
    io_log_violation v;
    v.what = std::move(what);
    v.image = options_.log + ".crash.img";
    drive_.find_image(sectors_, c);
    write_image(v.image, sectors_);
    std::map<std::uint64_t, std::pair<const simulator::drive_request*, std::size_t>> lost;
    for (std::size_t i = 0; i < c.size(); ++i)
      for (std::size_t k = c[i]; k < drive_.unit(units[i]).versions.size(); ++k) {
        const simulator::drive_request* const r = drive_.unit(units[i]).versions[k].of.get();
        auto& known = lost[r->submitted];
        known.first = r;
        ++known.second;
      }
    for (const auto& [when, request] : lost) {
      const blocks::request& r = request.first->asked;
      v.lost += "\n  lost: " + std::to_string(request.second) + " unit(s) of request " + std::to_string(r.tag) +
                ", the " + std::string(blocks::name_of(r.what)) + " of " + std::to_string(r.count) +
                " block(s) from block " + std::to_string(r.first) +
                (request.first->completed != 0 ? ", completed" : ", in flight");
    }
    const std::size_t last = std::min<std::size_t>(marks_.size(), 3);
    v.marks.assign(marks_.end() - static_cast<std::ptrdiff_t>(last), marks_.end());
    result_.found = std::move(v);
  }

  const io_log_options& options_;
  const std::function<std::string(const io_log_state&)>& check_;
  const std::function<void(const io_log_result&)>& progress_;
  blocks::io_log_reader reader_;
  persistent_drive drive_;
  persistent_drive::queue queue_;
  std::map<std::uint64_t, std::vector<std::byte>> in_flight_;  // by the request's number: its data
  std::map<std::uint64_t, bool> unflushed_;                    // by the time of submission
  std::vector<std::string> marks_;
  std::vector<const std::byte*> sectors_;
  scratch_file image_;
  splitmix64 random_;
  seen_images seen_;
  std::vector<std::uint32_t> choice_;
  io_log_result result_;
  clock::time_point start_ = clock::now();
};

}  // namespace

io_log_result explore_io_log(const io_log_options& options,
                             const std::function<std::string(const io_log_state&)>& check,
                             const std::function<void(const io_log_result&)>& progress) {
  return replay(options, check, progress).run();
}

std::function<std::string(const io_log_state&)> check_by_command(const std::string& command, double seconds) {
  std::shared_ptr<check_command> check;
  return [=](const io_log_state& state) mutable -> std::string {
    if (!check) check = std::make_shared<check_command>(command, state.image, seconds);
    check->start(state.marks);
    for (;;) {
      check_command::wait_for_one({check.get()});
      if (std::optional<std::string> wrong = check->verdict()) {
        if (wrong->empty()) check->works();
        return *wrong;
      }
    }
  };
}

}  // namespace pmlab::verify
