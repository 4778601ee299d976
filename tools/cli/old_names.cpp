#include "tools/cli/old_names.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

struct renamed {
  std::string_view before, now;
};
constexpr std::array<renamed, 3> store_options{
    {{"--keys", "--records"}, {"--repetitions", "--repeat"}, {"--medium-bytes", "--pool-size"}}};
constexpr std::array<renamed, 1> microbench_options{{{"--size", "--device-bytes"}}};

void tell(std::string_view before, std::string_view now) {
  fmt::print(stderr, "pmlab: note: `{}` is `{}` now; the old name goes with the next version\n", before, now);
}

// "--keys" and "--keys=5".
template <class Names>
void rename_options(arguments& words, const Names& names) {
  for (std::string& word : words)
    for (const auto& [before, now] : names)
      if (word == before || word.starts_with(std::string(before) + "=")) {
        tell(before, now);
        word.replace(0, before.size(), now);
      }
}

// Takes `--kind NAME` or `--kind=NAME` out of the words. Returns NAME; "block" if there is none.
std::string taken_kind(arguments& words) {
  constexpr std::string_view option = "--kind";
  std::string kind = "block";
  for (auto word = words.begin(); word != words.end();) {
    if (word->starts_with(std::string(option) + "=")) {
      kind = word->substr(option.size() + 1);
      word = words.erase(word);
    } else if (*word == option && std::next(word) != words.end()) {
      kind = *std::next(word);
      word = words.erase(word, word + 2);
    } else {
      ++word;
    }
  }
  return kind;
}

}  // namespace

arguments in_new_names(const arguments& typed) {
  arguments words = typed;
  if (words.size() >= 2 && words[0] == "stores" && words[1] == "bench") {
    const std::string kind = taken_kind(words);
    if (kind != "block" && kind != "kv")
      throw error(fmt::format("there is no kind of stores '{}'", kind),
                  "give `pmlab stores volumes` or `pmlab stores pairs`");
    words[1] = kind == "kv" ? "pairs" : "volumes";
    tell("stores bench --kind " + kind, "stores " + words[1]);
    rename_options(words, store_options);
  } else if (!words.empty() && words[0] == "microbench") {
    rename_options(words, microbench_options);
  }
  return words;
}

}  // namespace pmlab::cli
