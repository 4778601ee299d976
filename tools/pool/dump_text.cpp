// Entries of pools as text.
#include "tools/pool/dump_text.hpp"
#include "tools/pool/strings_text.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/values.hpp>
#include "bench/support/printable.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pmlab::pool {
namespace {

constexpr std::string_view header_mark = "# pmlab-dump 1 ";
constexpr std::string_view an_example =
    R"(begin it with a line like # pmlab-dump 1 {"root":"orders","index":"cceh"}; docs/pools.md shows the format)";

class reader {
 public:
  reader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::vector<dumped_root> read() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      is_cut_ = end == text_.size();
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.starts_with('#'))
        begin_root(line);
      else if (line.find_first_not_of(" \t") != std::string_view::npos)
        add_entry(line);
    }
    finish_root();
    // A value may have lost its last digits.
    if (is_cut_ && announced_)
      refuse("the line has no end", "dump it again: the text was cut off; or end the line if it is whole");
    if (roots_.size() < least_roots_)
      throw error(fmt::format("{}: {} roots are there, and a header says that there are {}", path_, roots_.size(),
                              least_roots_),
                  "dump it again: the text was cut off; or take \"roots_left\" out of the headers");
    if (roots_.empty()) throw error(path_ + " is no dump: it is empty", std::string(an_example));
    return std::move(roots_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, std::string_view remedy) const {
    throw error(fmt::format("{}:{}: {}", path_, number_, why), std::string(remedy));
  }

  void begin_root(std::string_view line) {
    finish_root();
    if (!line.starts_with(header_mark)) refuse("no header of a dump that this build reads", an_example);
    const nlohmann::json said = nlohmann::json::parse(line.substr(header_mark.size()), nullptr, false);
    const auto text = [&](const char* key) {
      if (!said.is_object() || !said.contains(key) || !said[key].is_string())
        refuse(fmt::format("the header has no text \"{}\"", key), an_example);
      return said[key].get<std::string>();
    };
    dumped_root root;
    root.name = text("root");
    if (said.contains("escaped")) {
      if (!said["escaped"].is_boolean()) refuse("\"escaped\" is neither true nor false", an_example);
      if (said["escaped"].get<bool>()) root.name = name_of_printable(root.name);
    }
    try {
      check_name(root.name, media::root_name_limit, "a root");
    } catch (const error& e) {
      refuse(e.what(), {});
    }
    if (std::any_of(roots_.begin(), roots_.end(), [&](const dumped_root& r) { return r.name == root.name; }))
      refuse(fmt::format("root '{}' occurs twice", printable(root.name)),
             "put its entries together, or give it another name");
    const std::string index = text("index");
    try {
      root.index = &bench::find_index(index);
    } catch (const error& e) {
      throw error(fmt::format("{}:{}: {}", path_, number_, e.what()), {});
    }
    if (said.contains("strings")) {
      root.values = text("strings");
      if (root.values != strings::word_values::name && root.values != strings::blob_values::name)
        refuse(fmt::format("there are no strings with values '{}'", root.values), "write words or blobs");
    }
    announced_.reset();
    if (said.contains("entries")) {
      if (!said["entries"].is_number_unsigned()) refuse("\"entries\" is no count", an_example);
      announced_ = said["entries"].get<std::uint64_t>();
    }
    roots_.push_back(std::move(root));
    if (said.contains("roots_left")) {
      if (!said["roots_left"].is_number_unsigned() || said["roots_left"].get<std::uint64_t>() > media::root_limit)
        refuse("\"roots_left\" is no count of roots", an_example);
      least_roots_ = std::max(least_roots_, roots_.size() + said["roots_left"].get<std::size_t>());
    }
  }

  // Parses a number at the front of the line and removes it.
  std::uint64_t number_from(std::string_view& line, std::string_view what) const {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), value);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (failed != std::errc() || (!line.empty() && line.front() != ' ' && line.front() != '\t'))
      refuse(fmt::format("no {} from 0 to 2^64 - 1", what), "write KEY VALUE, two unsigned decimal numbers");
    return value;
  }

  void add_entry(std::string_view line) {
    if (roots_.empty()) refuse("an entry before any header", an_example);
    if (!roots_.back().values.empty()) {
      std::optional<string_entries::value_type> entry = entry_of(line, roots_.back().values);
      if (!entry)
        refuse("no key and value of string keys",
               "write KEY VALUE, percent-encoded as in docs/pools.md; values of \"words\" are numbers");
      return roots_.back().texts.push_back(*std::move(entry));
    }
    const std::uint64_t key = number_from(line, "key");
    const std::uint64_t value = number_from(line, "value");
    if (line.find_first_not_of(" \t") != std::string_view::npos)
      refuse("more than a key and a value", "write KEY VALUE, two unsigned decimal numbers");
    roots_.back().entries.push_back({key, value});
  }

  void finish_root() {
    if (roots_.empty()) return;
    dumped_root& root = roots_.back();
    const std::size_t count = root.values.empty() ? root.entries.size() : root.texts.size();
    if (announced_ && *announced_ != count)
      throw error(fmt::format("{}: root '{}' has {} entries, and its header has {}", path_, printable(root.name), count,
                              *announced_),
                  "dump it again: the text was cut off or changed");
    if (!root.values.empty()) return finish_strings(root);
    const auto before = [](const indexes::entry& a, const indexes::entry& b) { return a.key < b.key; };
    if (!std::is_sorted(root.entries.begin(), root.entries.end(), before))
      std::sort(root.entries.begin(), root.entries.end(), before);
    const auto twice = std::adjacent_find(root.entries.begin(), root.entries.end(),
                                          [](const auto& a, const auto& b) { return a.key == b.key; });
    if (twice != root.entries.end())
      throw error(fmt::format("{}: key {} of root '{}' occurs twice", path_, twice->key, printable(root.name)),
                  "leave one of them");
  }

  void finish_strings(dumped_root& root) const {
    std::sort(root.texts.begin(), root.texts.end());
    const auto twice = std::adjacent_find(root.texts.begin(), root.texts.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice != root.texts.end())
      throw error(fmt::format("{}: key {} of root '{}' occurs twice", path_, percent_encoded(twice->first),
                              printable(root.name)),
                  "leave one of them");
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t number_ = 0;  // number of the line
  std::vector<dumped_root> roots_;
  std::optional<std::uint64_t> announced_;  // entries of the last root
  std::size_t least_roots_ = 0;             // by the headers
  bool is_cut_ = false;                     // the last line has no end
};

// The header of a root. `values`: of string keys; empty: these are numbers. Earlier releases read it, too, where its
// name is text.
nlohmann::ordered_json header_of(const std::string& name, const bench::index_description& index,
                                 const std::string& values, std::size_t count, std::size_t roots_left) {
  const bool is_text = is_utf8(name);
  nlohmann::ordered_json header{{"root", is_text ? name : printable(name)}};
  if (!is_text) header["escaped"] = true;
  header["index"] = index.name;
  if (!values.empty()) header["strings"] = values;
  header["layout_version"] = index.layout_version;
  header["entries"] = count;
  if (roots_left > 0) header["roots_left"] = roots_left;
  return header;
}

// Lines that go to a file in blocks.
class line_writer {
 public:
  line_writer(std::FILE* file, const std::string& path, const nlohmann::ordered_json& header)
      : file_(file), path_(path) {
    add(std::string(header_mark) + header.dump());
  }

  void add(const std::string& line) {
    constexpr std::size_t block = 1 << 16;
    (text_ += line) += '\n';
    if (text_.size() >= block) flush();
  }

  void flush() {
    if (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size())
      throw error(fmt::format("cannot write to {}: {}", path_, std::strerror(errno)), "check the space there");
    text_.clear();
  }

 private:
  std::FILE* file_;
  const std::string& path_;
  std::string text_;
};

}  // namespace

void write_root(std::FILE* file, const std::string& path, const std::string& name,
                const bench::index_description& index, std::span<const indexes::entry> entries,
                std::size_t roots_left) {
  line_writer lines(file, path, header_of(name, index, {}, entries.size(), roots_left));
  for (const indexes::entry& e : entries) lines.add(fmt::format("{} {}", e.key, e.value));
  lines.flush();
}

void write_strings(std::FILE* file, const std::string& path, const std::string& name,
                   const bench::index_description& index, const std::string& values, const string_entries& entries,
                   std::size_t roots_left) {
  line_writer lines(file, path, header_of(name, index, values, entries.size(), roots_left));
  for (const auto& e : entries) lines.add(line_of(e, values));
  lines.flush();
}

std::vector<dumped_root> parse_dump(std::string_view text, const std::string& path) {
  return reader(text, path).read();
}

}  // namespace pmlab::pool
