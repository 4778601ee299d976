// The places of a flush_profile as lines of the source.
#include "checker/verify/flush_report.hpp"
#include "checker/verify/source_lines.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::string_view mark = "edundant when";

// Functions that flush for their callers.
bool flushes_for_others(const std::string& file) {
  return file.find("/pmlab/media/") != std::string::npos || is_of_the_checker(file);
}

// The copy of a header of ours that this program was built with: a cache of compilers may name another one.
std::string path_of(const std::string& file) {
  const std::size_t ours = file.rfind("/include/pmlab/");
  if (ours == std::string::npos) return file;
  const std::size_t room = file.rfind('/', ours - 1);
  if (ours == 0 || room == std::string::npos) return file;
  std::string here = PMLAB_SOURCE_FOLDER + file.substr(room);
  return std::filesystem::exists(here) ? here : file;
}

// The reason that is given for a statement at this line of the file: in the line, or in the comment above it.
std::string reason_at(const source_frame& at) {
  std::ifstream source(path_of(at.file));
  std::vector<std::string> lines;
  for (std::string line; lines.size() < at.line && std::getline(source, line);) lines.push_back(line);
  if (lines.size() < at.line || at.line == 0) return {};
  for (std::size_t i = at.line; i > 0; --i) {
    const std::string& line = lines[i - 1];
    const std::size_t comment = line.find("//");
    if (const std::size_t found = line.find(mark); found != std::string::npos && found > comment)
      return std::string("R").append(line, found);
    const bool only_comment = comment != std::string::npos && line.find_first_not_of(' ') == comment;
    if (i != at.line && !only_comment) break;
  }
  return {};
}

struct place {
  std::string text;
  std::string reason;
};

place place_of(const void* caller) {
  const std::vector<source_frame> frames = source_frames_of(caller);
  if (frames.empty()) return {"an unknown place", {}};
  auto first = std::find_if(frames.begin(), frames.end(), [](const auto& f) { return !flushes_for_others(f.file); });
  if (first == frames.end()) first = frames.begin();
  place p{short_path(first->file + ":" + std::to_string(first->line)) + " (" + first->function + ")", {}};
  if (frames.back().function != first->function) p.text += " in " + frames.back().function;
  for (auto f = first; f != frames.end() && p.reason.empty(); ++f) p.reason = reason_at(*f);
  return p;
}

bool is_of_a_fence(waste kind) noexcept { return kind == waste::idle; }

}  // namespace

const char* in_words(waste kind) noexcept {
  switch (kind) {
    case waste::clean: return "flush of a line without new stores";
    case waste::of_volatile: return "flush of memory that is not persistent";
    case waste::idle: return "fence without a flush before it";
    case waste::again: return "second flush of a line in one operation";
  }
  return "?";
}

flush_report report_of(const flush_profile& profile) {
  flush_report report;
  report.operations = profile.operations();
  // Code that the compiler has copied has several addresses.
  std::map<std::pair<std::string, waste>, wasteful_line> lines;
  for (const flush_place& p : profile.places()) {
    report.flushes += p.flushes;
    report.fences += p.fences;
    const place where = place_of(p.caller);
    for (const waste kind : {waste::clean, waste::of_volatile, waste::idle, waste::again}) {
      wasteful_line& line = lines[{where.text, kind}];
      line.kind = kind;
      line.place = where.text;
      line.reason = where.reason;
      line.times += p.wasted[static_cast<std::size_t>(kind)];
      line.of += is_of_a_fence(kind) ? p.fences : p.flushes;
    }
  }
  for (auto& [key, line] : lines)
    if (line.times != 0) report.lines.push_back(std::move(line));
  std::stable_sort(report.lines.begin(), report.lines.end(), [](const auto& a, const auto& b) {
    const bool idle_a = has_no_effect(a.kind), idle_b = has_no_effect(b.kind);
    return idle_a != idle_b ? idle_a : a.times > b.times;
  });
  return report;
}

}  // namespace pmlab::verify
