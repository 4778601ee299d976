#include "microbench/drive/fio.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include "bench/support/read_file.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pmlab::drive {
namespace {

constexpr const char* remedy = "see `pmlab microbench --fio off`";

// The first is what pmlab itself uses; a kernel or a container may forbid it.
constexpr std::array engines = {"io_uring", "libaio"};

struct removed_file {
  std::string path;
  ~removed_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

// Runs the program with its complaints in a file.
exit_reason run_quietly(const std::string& program, std::vector<std::string> words, const std::string& complaints) {
  const descriptor to(::open(complaints.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return child_process::forked([&] {
           constexpr int cannot_be_run = 127;
           ::dup2(to.get(), STDERR_FILENO);
           ::execv(program.c_str(), pointers.data());
           ::_exit(cannot_be_run);
         })
      .wait();
}

// The first line of the complaints; if there is none, how the program ended.
std::string reason_in(const std::string& complaints, const exit_reason& end) {
  std::ifstream file(complaints);
  std::string line;
  return std::getline(file, line) && !line.empty() ? line : end.text();
}

}  // namespace

std::vector<std::string> words_for_fio(const drive_case& c, const std::string& path, std::uint64_t bytes,
                                       double seconds, const std::string& output, const std::string& engine) {
  const std::string rw = fmt::format("{}{}", c.where == order::random ? "rand" : "", to_string(c.what));
  std::vector<std::string> words = {"fio",
                                    "--name=pmlab",
                                    "--filename=" + path,
                                    fmt::format("--size={}", bytes),
                                    "--rw=" + rw,
                                    fmt::format("--bs={}", c.bytes),
                                    fmt::format("--iodepth={}", c.depth),
                                    "--direct=1",
                                    "--ioengine=" + engine,
                                    "--norandommap",
                                    "--time_based",
                                    fmt::format("--runtime={}ms", static_cast<std::uint64_t>(seconds * 1000)),
                                    "--output-format=json",
                                    "--output=" + output};
  if (c.until == durability::flush) words.emplace_back("--fdatasync=1");
  if (c.until == durability::durable) words.emplace_back("--sync=dsync");
  return words;
}

double requests_per_s(const std::string& text, access what) {
  // Warnings may stand before the document.
  const std::size_t start = text.find('{');
  const nlohmann::json found =
      start == std::string::npos ? nlohmann::json() : nlohmann::json::parse(text.substr(start), nullptr, false);
  try {
    const double value = found.at("jobs").at(0).at(to_string(what)).at("iops").get<double>();
    if (value > 0) return value;
  } catch (const nlohmann::json::exception&) {
  }
  throw error("fio's output names no requests a second; pmlab knows the JSON of fio 3", remedy);
}

double run_fio(const std::string& fio, const drive_case& c, const std::string& path, std::uint64_t bytes,
               double seconds) {
  const removed_file output{
      (std::filesystem::temp_directory_path() / fmt::format("pmlab-fio-{}.json", ::getpid())).string()};
  const removed_file complaints{output.path + ".errors"};
  std::string reasons;
  for (const char* const engine : engines) {
    const exit_reason end =
        run_quietly(fio, words_for_fio(c, path, bytes, seconds, output.path, engine), complaints.path);
    if (end.is_success()) return requests_per_s(read_file(output.path, "fio's output"), c.what);
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", engine, reason_in(complaints.path, end));
  }
  throw error(fmt::format("fio failed in case {}: {}", c.name, reasons), remedy);
}

}  // namespace pmlab::drive
