// A library with PiBench's interface as a subject of verification.
#include "checker/verify/library_subject.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/pool_file.hpp"
#include "checker/simulator/simulated_library.hpp"
#include "checker/verify/check_command.hpp"
#include "checker/verify/child_run.hpp"
#include "checker/verify/hosts/host_objects.hpp"
#include "checker/verify/library_copy.hpp"
#include "checker/verify/reached_code.hpp"
#include "checker/verify/silent_stdout.hpp"
#include "checker/verify/thrown.hpp"
#include <pmlab/base/shared_object.hpp>
#include <pmlab/pibench/library.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <signal.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

class library_target final : public target {
 public:
  library_target(const pibench::library& library, const std::string& pool, std::size_t pool_bytes, bool recovers)
      : recovers_(recovers) {
    tree_options_t options;
    options.pool_path = pool;
    options.pool_size = pool_bytes;
    options.num_threads = 8;
    tree_ = library.create(options);
  }

  answer perform(const step& s) override {
    using indexes::outcome;
    const char* const key = reinterpret_cast<const char*>(&s.key);
    const char* const value = reinterpret_cast<const char*>(&s.value);
    constexpr std::size_t size = sizeof(std::uint64_t);
    switch (s.what) {
      case action::insert:
      case action::load:
      case action::upsert: return {tree_->insert(key, size, value, size) ? outcome::inserted : outcome::exists, {}};
      case action::update: return {tree_->update(key, size, value, size) ? outcome::updated : outcome::absent, {}};
      case action::erase: return {tree_->remove(key, size) ? outcome::erased : outcome::absent, {}};
      case action::meet:
      case action::find: break;
    }
    std::uint64_t found = 0;
    if (!tree_->find(key, size, reinterpret_cast<char*>(&found))) return {};
    return {{}, found};
  }

  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) override {
    char* records = nullptr;
    const int count =
        tree_->scan(reinterpret_cast<const char*>(&from), sizeof from, static_cast<int>(out.size()), records);
    const std::size_t entries = count < 0 ? 0 : std::min(static_cast<std::size_t>(count), out.size());
    if (entries != 0) std::memcpy(out.data(), records, entries * sizeof(indexes::entry));
    return entries;
  }

  // The interface has no walk: searches find the present keys.
  void entries(std::vector<indexes::entry>& out) override {
    out.clear();
    for (const std::uint64_t key : *keys_) {
      if (recovers_) simulator::the_machine().allow(simulator::machine::patience);
      if (const answer a = perform({action::find, key, 0}); a.found) out.push_back({key, *a.found});
    }
  }
  void know_keys(const std::vector<std::uint64_t>& keys) override { keys_ = &keys; }

  std::string check() override { return {}; }
  std::optional<std::uint64_t> held_bytes() override { return std::nullopt; }

 private:
  std::unique_ptr<tree_api> tree_;
  const std::vector<std::uint64_t>* keys_ = nullptr;
  bool recovers_;  // in a crashed process, where each operation has as many steps as a round's
};

subject& library_kind() {
  static subject kind;
  return kind;
}

struct loaded_library {
  loaded_library(const std::string& file, std::size_t bytes)
      : path(file),
        running(path),
        going_on(fresh_copy(path)),
        recovering(fresh_copy(path)),
        pool_bytes(bytes),
        code(std::make_shared<reached_code>(path)) {}
  std::string path;
  pibench::library running;
  pibench::library going_on;
  pibench::library recovering;
  std::deque<pibench::library> on_hosts{};  // from the second host on
  std::size_t pool_bytes;
  std::shared_ptr<reached_code> code;
};

std::optional<loaded_library>& loaded() {
  static std::optional<loaded_library> library;
  return library;
}

// A file that reserves its name. The processes of a job run one after the other, so they share it, and each job has its
// own; the process that began removes them when it ends, however the others ended.
class pool_name {
 public:
  pool_name() : owner_(::getpid()) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::canonical(fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp");
    remove_those_of_killed(folder);
    path_ = (folder / (std::string(prefix) + std::to_string(owner_))).string();
    for (unsigned job = 0; job < most_jobs; ++job) {
      of_jobs_[job] = path_;
      if (job != 0) of_jobs_[job].append("-").append(std::to_string(job));
      of_jobs_[job].append(".pool");
      scratch_file::remove_too(of_jobs_[job].c_str());
    }
    scratch_file::remove_on_signals();
  }
  pool_name(const pool_name&) = delete;
  pool_name& operator=(const pool_name&) = delete;
  ~pool_name() {
    if (::getpid() != owner_) return;
    for (unsigned job = 0; job < most_jobs; ++job) std::remove(of_job(job).c_str());
  }
  [[nodiscard]] const std::string& of_job(unsigned job) const { return of_jobs_[job]; }

 private:
  static constexpr std::string_view prefix = "pmlab-verify-";

  // SIGKILL leaves the files of its process behind, with its number in their names.
  static void remove_those_of_killed(const std::filesystem::path& folder) {
    std::error_code failed;
    for (const auto& file : std::filesystem::directory_iterator(folder, failed)) {
      const std::string name = file.path().filename().string();
      if (!name.starts_with(prefix) || !name.ends_with(".pool")) continue;
      const auto process = static_cast<pid_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10));
      if (process > 0 && ::kill(process, 0) != 0 && errno == ESRCH) std::remove(file.path().c_str());
    }
  }

  pid_t owner_;
  std::string path_;
  std::array<std::string, most_jobs> of_jobs_;
};

const std::string& served_path() {
  static const pool_name pool;
  static unsigned job = 0;
  static std::string path = pool.of_job(job);
  if (job != job_of_process()) path = pool.of_job(job = job_of_process());
  return path;
}

bool is_going_on = false;

std::unique_ptr<target> open_running() {
  simulator::machine& machine = simulator::the_machine();
  machine.quietly([&] {
    if (!is_going_on) std::remove(served_path().c_str());
    simulator::serve_file(served_path(), machine.memory());
  });
  const pibench::library& copy = is_going_on ? loaded()->going_on : loaded()->running;
  return std::make_unique<library_target>(copy, served_path(), loaded()->pool_bytes, false);
}

std::unique_ptr<target> open_recovered() {
  simulator::the_machine().record(loaded()->code->copy_with(loaded()->recovering.entry()));
  return std::make_unique<library_target>(loaded()->recovering, served_path(), loaded()->pool_bytes, true);
}

// The file stays: it has the pool's size, with which a run may go on.
void close_running() { simulator::serve_file(served_path(), nullptr); }

}  // namespace

const subject& load_library(const std::string& path, bool scans, std::size_t pool_bytes,
                            const missing_operations& missing) {
  check_not_cut_off(path);
  simulator::check_simulated(path);
  simulator::check_debug_information(path);
  check_constructors(path);
  subject& kind = library_kind();
  {
    const silent_stdout its_constructors;
    loaded().emplace(path, pool_bytes);
  }
  static_cast<void>(served_path());  // this process's
  kind.name = std::filesystem::path(path).filename().string();
  if (missing.update || missing.erase)
    kind.name += std::string(" without ") + (missing.update ? "update" : "") +
                 (missing.update && missing.erase ? "," : "") + (missing.erase ? "remove" : "");
  kind.missing = missing;
  kind.ordered = kind.image_is_ordered = scans;
  kind.reserves_sentinels = true;
  kind.open_simulated = open_running;
  kind.open_recovered = open_recovered;
  kind.after_run = close_running;
  return kind;
}

void open_library_on_hosts(unsigned hosts) {
  subject& kind = library_kind();
  const silent_stdout its_constructors;
  host_objects& objects = host_objects::of(kind);
  if (!objects.has(0)) objects.add(0, simulator::parts_of_object_at(loaded()->running.entry()));
  while (kind.open_on_host.size() + 1 < hosts) {
    const pibench::library& copy = loaded()->on_hosts.emplace_back(fresh_copy(loaded()->path));
    // The file is there, and served: the library finds what the first host has made.
    kind.open_on_host.emplace_back(
        [&copy] { return std::make_unique<library_target>(copy, served_path(), loaded()->pool_bytes, false); });
    objects.add(static_cast<unsigned>(kind.open_on_host.size()), simulator::parts_of_object_at(copy.entry()));
  }
}

void go_on_from(simulator::persistent_memory* memory) {
  is_going_on = memory != nullptr;
  if (is_going_on) simulator::serve_file(served_path(), memory);
}

const reached_code* code_of(const subject& kind) { return &kind == &library_kind() ? loaded()->code.get() : nullptr; }

std::size_t memory_bytes_of(const subject& kind) {
  constexpr std::size_t usual = std::size_t{64} << 20;
  if (&kind != &library_kind()) return usual;
  constexpr std::size_t beside = std::size_t{32} << 20;  // some libraries map more than they were given
  constexpr std::size_t page = 4096;
  return (loaded()->pool_bytes + beside + page - 1) & ~(page - 1);
}

}  // namespace pmlab::verify
