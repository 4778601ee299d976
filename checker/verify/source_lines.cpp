// Where in the source an address of code is.
#include "checker/verify/source_lines.hpp"
#include "checker/verify/library_copy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

bool is_of_the_system(const std::string& place) {
  return place.starts_with("/usr/") || place.starts_with("?") || place.find("/c++/") != std::string::npos;
}

// Helpers that submit requests for their callers.
bool passes_requests_on(const std::string& place) {
  return place.find("pmlab/blocks/") != std::string::npos || is_of_the_checker(place);
}

// "pmlab::indexes::fast_fair<...>::insert(...)" is "insert".
std::string short_name(const std::string& name) {
  std::string flat;
  int depth = 0;
  for (const char c : name) {
    if (c == '<' || c == '(') ++depth;
    if (depth == 0) flat += c;
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  const std::size_t colon = flat.rfind("::");
  return colon == std::string::npos ? flat : flat.substr(colon + 2);
}

// The lines of the object that has this return address: function and place by turns, the innermost first.
std::vector<std::string> lines_at(const Dl_info& object, std::uintptr_t address) {
  const std::uintptr_t offset = address - 1 - reinterpret_cast<std::uintptr_t>(object.dli_fbase);
  std::array<char, 32> hex;
  std::snprintf(hex.data(), hex.size(), "%#lx", static_cast<unsigned long>(offset));
  return lines_of_command("addr2line -Cfi -e '" + original_of(object.dli_fname) + "' " + hex.data() + " 2>/dev/null");
}

// `submitter`: "" rather than a helper for block devices.
std::string place_of(std::uintptr_t address, bool submitter = false) {
  Dl_info object{};
  // A return address is the one after the call.
  if (address == 0 || ::dladdr(reinterpret_cast<void*>(address - 1), &object) == 0 || object.dli_fname == nullptr)
    return "an unknown place";
  const std::vector<std::string> lines = lines_at(object, address);
  // Function and place by turns, the innermost first.
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2)
    if (!is_of_the_system(lines[i + 1]) && !(submitter && passes_requests_on(lines[i + 1])))
      return short_path(lines[i + 1]) + " (" + short_name(lines[i]) + ")";
  if (submitter) return {};
  std::array<char, 32> hex;
  std::snprintf(hex.data(), hex.size(), "+%#lx",
                static_cast<unsigned long>(address - 1 - reinterpret_cast<std::uintptr_t>(object.dli_fbase)));
  return original_of(object.dli_fname) + hex.data();
}

// "0x..." up to what is no digit.
std::uintptr_t number_in(std::string_view text) { return std::strtoull(std::string(text).c_str(), nullptr, 16); }

// Addresses with | between them, each the caller of the one before: the place that requested a helper's work.
std::string place_of_any(std::string_view addresses) {
  const std::string_view first = addresses.substr(0, addresses.find('|'));
  while (first.size() != addresses.size()) {
    const std::size_t end = std::min(addresses.find('|'), addresses.size());
    if (std::string place = place_of(number_in(addresses.substr(0, end)), true); !place.empty()) return place;
    if (end == addresses.size()) break;
    addresses.remove_prefix(end + 1);
  }
  return place_of(number_in(first));
}

// The first of the addresses, with > between them, and its callers: each the caller of the one before.
std::string place_and_callers(std::string_view addresses) {
  constexpr std::size_t most = 6;
  std::vector<source_frame> frames;
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < addresses.size() && frames.size() <= most; begin = end + 1) {
    end = std::min(addresses.find('>', begin), addresses.size());
    const std::uintptr_t one = number_in(addresses.substr(begin, end - begin));
    for (source_frame& f : source_frames_of(reinterpret_cast<const void*>(one)))
      // Lambdas have no name, and what calls main is the C library's.
      if (!is_of_the_checker(f.file) && (frames.empty() || !f.function.starts_with("operator")) &&
          !f.function.starts_with("__libc_start"))
        frames.push_back(std::move(f));
  }
  std::string text = place_of(number_in(addresses));
  for (std::size_t i = 1; i < std::min(frames.size(), most); ++i)
    text += (i == 1 ? "\n    called by " : ", ") + frames[i].function + " (" + short_path(frames[i].file) + ":" +
            std::to_string(frames[i].line) + ")";
  return text;
}

}  // namespace

bool is_of_the_checker(const std::string& place) {
  return place.find("checker/simulator/") != std::string::npos || place.find("checker/verify/") != std::string::npos;
}

std::string short_path(const std::string& place) {
  const std::size_t tree = place.rfind("/pmlab/");
  std::string text = tree == std::string::npos ? place : place.substr(tree + 7);
  return text.substr(0, text.find(" (discriminator"));
}

std::vector<source_frame> source_frames_of(const void* address) {
  Dl_info object{};
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (number == 0 || ::dladdr(reinterpret_cast<void*>(number - 1), &object) == 0 || object.dli_fname == nullptr)
    return {};
  std::vector<source_frame> frames;
  const std::vector<std::string> lines = lines_at(object, number);
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    const std::string& place = lines[i + 1];
    const std::size_t colon = place.rfind(':');
    if (is_of_the_system(place) || colon == std::string::npos) continue;
    frames.push_back({place.substr(0, colon),
                      static_cast<unsigned>(std::strtoul(place.c_str() + colon + 1, nullptr, 10)),
                      short_name(lines[i])});
  }
  return frames;
}

std::vector<std::string> lines_of_command(const std::string& command) {
  std::vector<std::string> lines;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 4096> line;
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    std::string text(line.data());
    while (!text.empty() && text.back() == '\n') text.pop_back();
    lines.push_back(std::move(text));
  }
  return lines;
}

std::vector<std::string> functions_at(const std::string& path, const std::vector<std::uintptr_t>& addresses) {
  std::array<char, 32> list{"/tmp/pmlab-XXXXXX"};
  const int file = ::mkstemp(list.data());
  if (file < 0) return {};
  std::string text;
  for (const std::uintptr_t address : addresses) {
    std::array<char, 32> line;
    std::snprintf(line.data(), line.size(), "%#lx\n", static_cast<unsigned long>(address - 1));
    text += line.data();
  }
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  std::vector<std::string> names;
  std::vector<std::string> of_one;  // function and place by turns, the innermost first
  const auto take = [&] {
    std::string name;
    for (std::size_t i = 0; i + 1 < of_one.size() && name.empty(); i += 2)
      if (!is_of_the_system(of_one[i + 1])) name = short_name(of_one[i]) + " (" + short_path(of_one[i + 1]) + ")";
    names.push_back(std::move(name));
    of_one.clear();
  };
  if (written) {
    bool first = true;
    for (std::string& line : lines_of_command("addr2line -a -Cfi -e '" + path + "' <" + list.data() + " 2>/dev/null")) {
      if (!line.starts_with("0x")) {
        of_one.push_back(std::move(line));
        continue;
      }
      if (!first) take();
      first = false;
    }
    if (!first) take();
  }
  ::unlink(list.data());
  return names;
}

std::string with_source_lines(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find("{0x", at);
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) return result + std::string(text.substr(at));
    result += text.substr(at, open - at);
    const std::string_view addresses = text.substr(open + 1, close - open - 1);
    result += addresses.find('>') != std::string_view::npos ? place_and_callers(addresses) : place_of_any(addresses);
    at = close + 1;
  }
  return result;
}

}  // namespace pmlab::verify
