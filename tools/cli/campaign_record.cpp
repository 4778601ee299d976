// The record of a campaign over a range of seeds.
#include "tools/cli/campaign_record.hpp"
#include "checker/verify/source_lines.hpp"
#include <pmlab/base/error.hpp>
#include "bench/engine/results_json.hpp"
#include "bench/support/json_text.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/read_file.hpp"
#include "bench/support/shell_form.hpp"
#include "bench/support/write_file.hpp"

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr int schema = 1;
constexpr std::string_view record_name = "campaign.json";
constexpr std::string_view manifest_name = "manifest.json";

json options_of(const verify_request& request, const verify::campaign_options& o) {
  json j;
  j["subject"] = request.subject.empty() ? json(nullptr) : json(fs::path(request.subject).filename().string());
  j["library"] = request.library.empty() ? json(nullptr) : json(fs::path(request.library).filename().string());
  j["scans"] = request.scans;
  if (request.persistence != "adr") j["persistence"] = request.persistence;
  if (!request.memory_order.empty()) j["memory_order"] = request.memory_order;
  if (request.pool_bytes != 0) j["pool_bytes"] = request.pool_bytes;
  j["crashes"] = o.crashes;
  j["schedules"] = o.schedules;
  if (request.short_dram) j["short_dram"] = true;
  if (request.kills) j["kills"] = true;
  if (request.pauses) j["pauses"] = true;
  if (request.joins) j["joins"] = true;
  j["threads"] = o.round.threads;
  j["operations"] = o.round.operations;
  j["keys"] = o.round.keys;
  j["shrink_seconds"] = o.shrink_seconds;
  return j;
}

// visit(name in the record, count) for each count of a record.
template <class Counts, class Visit>
void for_each_count(Counts& counts, Visit&& visit) {
  visit("rounds", counts.rounds);
  for (const auto& c : verify::crash_counts::counters) visit(c.name, counts.crash.*c.value);
  visit("schedules", counts.schedules);
}

json counts_of_nothing(const std::string& index) {
  json j = {{"index", index}, {"done", nullptr}};
  const verify::round_counts none;
  for_each_count(none, [&j](std::string_view name, std::uint64_t count) { j[name] = count; });
  j["violations"] = json::array();
  return j;
}

json new_record(const verify_request& request, const verify::campaign_options& options,
                const std::vector<std::string>& indexes, const bench::machine_facts& machine) {
  json j;
  j["schema"] = schema;
  j["kind"] = "campaign";
  j["build"] = {{"compiler", machine.compiler},
                {"flags", machine.flags},
                {"commit", machine.commit},
                {"pmlab_version", machine.version}};
  j["options"] = options_of(request, options);
  j["seeds"] = {request.seeds->first, request.seeds->last};
  j["indexes"] = json::array();
  for (const std::string& index : indexes) j["indexes"].push_back(counts_of_nothing(index));
  return j;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

json new_manifest(const bench::machine_facts& machine, const arguments& command_line) {
  json j;
  j["schema"] = schema;
  j["kind"] = "campaign";
  j["command"] = shell_form(command_line);
  j["started"] = machine.date;
  j["seconds"] = 0.0;
  j["machine"] = bench::facts_to_json(machine);
  j["hosts"] = {{host_name(), j["machine"]}};
  return j;
}

// Until this process ends: two in one folder would take each other's counts. Throws pmlab::error.
void keep_others_out(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A file system without locks gives another error.
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw error("another `pmlab verify` works in " + folder, "wait for its end, or end it");
}

// Null: there is no such file. Throws pmlab::error: it is not JSON.
json read(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  json document = json::parse(read_file(path.string(), "record"), nullptr, false);
  if (document.is_discarded())
    throw error(path.string() + " is no JSON", "give --out another folder, or remove this one");
  return document;
}

// As far as another run must have it to go on.
json identity(json record) {
  for (json& index : record["indexes"]) index = index["index"];
  return record;
}

}  // namespace

struct campaign_record::documents {
  json record, manifest;
};

campaign_record::campaign_record(const verify_request& request, const verify::campaign_options& options,
                                 const std::vector<std::string>& indexes, const arguments& command_line)
    : folder_(request.out), first_(request.seeds->first), documents_(std::make_unique<documents>()) {
  const bench::machine_facts machine = bench::facts_of_this_machine();
  documents_->record = new_record(request, options, indexes, machine);
  documents_->manifest = new_manifest(machine, command_line);
  if (folder_.empty()) return;
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (problem) throw error("cannot make " + folder_ + ": " + problem.message(), "give --out a folder that can be made");
  keep_others_out(folder_);
  const fs::path folder = folder_;
  const json before = read(folder / record_name);
  if (!before.is_null()) {
    if (!request.resume)
      throw error(folder_ + " holds a campaign already", "give --out another folder, or --resume to go on with it");
    const bool whole = before.is_object() && before.contains("indexes") && before["indexes"].is_array();
    if (!whole || identity(before) != identity(documents_->record))
      throw error(folder_ + " holds another campaign: other seeds, options or indexes, or of another build",
                  "give the command that began it, or --out another folder");
    documents_->record = before;
    const json told = read(folder / manifest_name);
    if (told.is_object() && told.contains("seconds") && told.contains("hosts") && told.contains("started")) {
      documents_->manifest["started"] = told["started"];
      documents_->manifest["seconds"] = told["seconds"];
      for (const auto& [host, facts] : told["hosts"].items())
        if (host != host_name()) documents_->manifest["hosts"][host] = facts;
    }
  } else if (fs::exists(folder / manifest_name)) {
    throw error(folder_ + " holds results of something else", "give --out another folder");
  }
  // Known to be writable before the first round; and a part that is killed is known to be one.
  save();
}

campaign_record::~campaign_record() = default;

std::uint64_t campaign_record::next_seed(std::size_t index) const {
  const json& done = documents_->record["indexes"][index]["done"];
  return done.is_null() ? first_ : done.get<std::uint64_t>() + 1;
}

void campaign_record::add(std::size_t index, const verify::round_counts& counts, std::uint64_t done, double seconds,
                          const verify::violation* found, const std::string& replay) {
  json& of = documents_->record["indexes"][index];
  of["done"] = done;
  for_each_count(
      counts, [&of](std::string_view name, std::uint64_t count) { of[name] = of[name].get<std::uint64_t>() + count; });
  if (found != nullptr)
    of["violations"].push_back({{"seed", done},
                                {"what", verify::with_source_lines(found->what)},
                                {"operations", found->operations},
                                {"history", found->history},
                                {"replay", replay}});
  documents_->manifest["seconds"] = documents_->manifest["seconds"].get<double>() + seconds;
}

std::size_t campaign_record::violations(std::size_t index) const {
  return documents_->record["indexes"][index]["violations"].size();
}

verify::round_counts campaign_record::counts(std::size_t index) const {
  const json& of = documents_->record["indexes"][index];
  verify::round_counts counts;
  for_each_count(counts, [&of](std::string_view name, std::uint64_t& count) { count = of[name]; });
  return counts;
}

void campaign_record::save() const {
  if (folder_.empty()) return;
  const fs::path folder = folder_;
  write_file(folder / manifest_name, json_text(documents_->manifest, 2) + "\n");
  write_file(folder / record_name, json_text(documents_->record, 2) + "\n");
}

}  // namespace pmlab::cli
