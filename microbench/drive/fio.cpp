#include "microbench/drive/fio.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include "bench/support/read_file.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace pmlab::drive {
namespace {

constexpr const char* remedy = "see `pmlab microbench --fio off`";

struct removed_file {
  std::string path;
  ~removed_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

std::vector<std::string> words_for_fio(const drive_case& c, const std::string& path, std::uint64_t bytes,
                                       double seconds, const std::string& output) {
  const std::string rw = fmt::format("{}{}", c.where == order::random ? "rand" : "", to_string(c.what));
  std::vector<std::string> words = {"fio",
                                    "--name=pmlab",
                                    "--filename=" + path,
                                    fmt::format("--size={}", bytes),
                                    "--rw=" + rw,
                                    fmt::format("--bs={}", c.bytes),
                                    fmt::format("--iodepth={}", c.depth),
                                    "--direct=1",
                                    "--ioengine=io_uring",
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
  const exit_reason end = child_process::of_program(fio, words_for_fio(c, path, bytes, seconds, output.path)).wait();
  if (!end.is_success()) throw error(fmt::format("fio failed ({}) in case {}", end.text(), c.name), remedy);
  return requests_per_s(read_file(output.path, "fio's output"), c.what);
}

}  // namespace pmlab::drive
