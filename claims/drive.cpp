// A solid-state drive beside the memory, measured by fio.
#include "claims/drive.hpp"
#include <pmlab/base/error.hpp>
#include "claims/child.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double bytes_per_gib = 1073741824;

json skipped(const std::string& reason) {
  json cases = json::array();
  for (const char* const name : {"drive-write", "drive-read"})
    cases.push_back({{"name", name}, {"medium", nullptr}, {"skipped", reason}, {"value", nullptr}, {"unit", nullptr}});
  return cases;
}

// A folder of its own below another one.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& below) : path_((fs::path(below) / "pmlab-drive-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw error(fmt::format("cannot make a folder in {}", below), "give --ssd a folder on the drive to write in");
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> fio_command(const std::string& file) {
  std::vector<std::string> words = {"fio",         "--output-format=json", "--filename=" + file, "--size=1G",
                                    "--bs=1M",     "--direct=1",           "--ioengine=libaio",  "--iodepth=32",
                                    "--runtime=5", "--time_based"};
  for (const char* const side : {"write", "read"})
    words.insert(words.end(), {fmt::format("--name={}", side), "--stonewall", fmt::format("--rw={}", side)});
  return words;
}

}  // namespace

json drive_cases(const json& fio, const std::string& folder) {
  json cases = json::array();
  for (const char* const side : {"write", "read"}) {
    const json::json_pointer place(fmt::format("/jobs/{}/{}/bw_bytes", cases.size(), side));
    if (!fio.contains(place) || !fio.at(place).is_number() || fio.at(place).get<double>() <= 0)
      throw error("fio's output names no bandwidth", "pmlab knows the JSON of fio 3");
    cases.push_back({{"name", fmt::format("drive-{}", side)},
                     {"group", "drive"},
                     {"about", "peak bandwidth of the drive below " + folder + ", by fio"},
                     {"claims", json::array({"M22"})},
                     {"medium", "drive"},
                     {"skipped", nullptr},
                     {"value", fio.at(place).get<double>() / bytes_per_gib},
                     {"unit", "GiB/s"}});
  }
  return cases;
}

json measure_drive(const std::string& folder) {
  if (folder.empty()) return skipped("no drive to compare with: --ssd FOLDER measures the one below FOLDER with fio");
  if (!fs::is_directory(folder)) throw error("no folder " + folder, "give --ssd a folder on the drive to write in");
  if (!has_program("fio")) return skipped("fio, which measures a drive, is not installed: install package fio");
  const temporary_folder own(folder);
  const std::string printed = own.path() + "/fio.json";
  if (run_program(fio_command(own.path() + "/data"), printed) != 0)
    throw error("fio failed in " + folder,
                "see its complaint above; it needs 1 GiB there and direct access (no tmpfs)");
  std::ifstream file(printed);
  const json answer = json::parse(file, nullptr, false);
  if (answer.is_discarded()) throw error("fio's output is no JSON", "pmlab knows the JSON of fio 3");
  return drive_cases(answer, folder);
}

}  // namespace pmlab::claims
