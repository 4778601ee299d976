// The fields of a case by name: how a suite sets each.
#include "microbench/memory/case_fields.hpp"
#include <pmlab/base/suggest.hpp>
#include "bench/devices/profile_file.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

constexpr std::uint64_t most_threads = 1024;

// The value whose word the text is.
template <class Enum>
Enum one_of(const suite_value& value, const std::string& text) {
  constexpr const auto& words = words_of<Enum>;
  const auto* const found = std::find(words.begin(), words.end(), text);
  if (found == words.end())
    value.refuse(fmt::format("has no value '{}'", text),
                 fmt::format("did you mean '{}'? Known: {}", nearest(text, words), fmt::join(words, ", ")));
  return static_cast<Enum>(found - words.begin());
}

void set_pattern(bench_case& c, const suite_value& v) {
  const std::string text = v.text();
  const std::size_t colon = text.find(':');
  const std::string head = text.substr(0, colon);
  const std::string tail = colon == std::string::npos ? "" : text.substr(colon + 1);
  constexpr const auto& words = words_of<pattern_kind>;
  const auto* const found = std::find(words.begin(), words.end(), head);
  if (found == words.end())
    v.refuse(fmt::format("has no value '{}'", text),
             fmt::format("did you mean '{}'? "
                         "Known: sequential, random, strided:BYTES, chase, zipfian:THETA, hot:LINES, halves",
                         nearest(head, words)));
  c.pattern = static_cast<pattern_kind>(found - words.begin());
  const bool takes_more =
      c.pattern == pattern_kind::strided || c.pattern == pattern_kind::zipfian || c.pattern == pattern_kind::hot;
  if (takes_more != !tail.empty())
    v.refuse(fmt::format("is '{}'", text), takes_more ? fmt::format("write {}:NUMBER", head) : "leave the colon out");
  const std::string what = fmt::format("{}: pattern '{}'", v.place(), text);
  if (c.pattern == pattern_kind::strided) c.stride_bytes = bench::parse_bytes(tail, what);
  if (c.pattern == pattern_kind::hot) c.hot_lines = bench::parse_count(tail, what);
  if (c.pattern == pattern_kind::zipfian) c.theta = bench::parse_factor(tail, what);
}

void set_fence(bench_case& c, const suite_value& v) {
  const std::string word = v.as_written();
  if (word == "never") {
    c.fence_bytes = fence_never;
  } else if (word == "each") {
    c.fence_bytes = fence_each_access;
  } else {
    c.fence_bytes = v.bytes();
    if (c.fence_bytes == 0) v.refuse("is 0", "write \"never\", \"each\", or a number of bytes");
  }
}

void set_medium(bench_case& c, const suite_value& v) {
  const std::string text = v.text();
  constexpr std::string_view profile = "profile:";
  if (text == "given") {
    c.medium = {};
  } else if (text == "dram") {
    c.medium = {case_medium::kind::dram, {}};
  } else if (text.starts_with(profile)) {
    c.medium = {case_medium::kind::profile, text.substr(profile.size())};
    static_cast<void>(media::load_profile(c.medium.profile));
  } else {
    v.refuse(fmt::format("has no value '{}'", text), "give given, dram, or profile:NAME");
  }
}

void set_steps(bench_case& c, const suite_value& v) {
  std::istringstream words(v.text());
  c.steps.clear();
  for (std::string word; words >> word;) c.steps.push_back(one_of<step_kind>(v, word));
}

unsigned threads_of(const suite_value& v, std::uint64_t least) {
  return static_cast<unsigned>(v.count(least, most_threads));
}

const std::vector<case_field>& fields() {
  static const std::vector<case_field> all = {
      {"medium", set_medium},
      {"operation", [](bench_case& c, const suite_value& v) { c.operation = one_of<operation_kind>(v, v.text()); }},
      {"load", [](bench_case& c, const suite_value& v) { c.load = one_of<load_kind>(v, v.text()); }},
      {"store", [](bench_case& c, const suite_value& v) { c.store = one_of<store_kind>(v, v.text()); }},
      {"pattern", set_pattern},
      {"measure", [](bench_case& c, const suite_value& v) { c.measure = one_of<measure_kind>(v, v.text()); }},
      {"access_bytes", [](bench_case& c, const suite_value& v) { c.access_bytes = v.bytes(); }},
      {"align_bytes", [](bench_case& c, const suite_value& v) { c.align_bytes = v.bytes(); }},
      {"offset_bytes", [](bench_case& c, const suite_value& v) { c.offset_bytes = v.bytes(); }},
      {"working_set_bytes", [](bench_case& c, const suite_value& v) { c.working_set_bytes = v.bytes(); }},
      {"private_sets", [](bench_case& c, const suite_value& v) { c.private_sets = v.flag(); }},
      {"dependent", [](bench_case& c, const suite_value& v) { c.dependent = v.flag(); }},
      {"fence", set_fence},
      {"cache", [](bench_case& c, const suite_value& v) { c.cache = one_of<cache_state>(v, v.text()); }},
      {"idle_ns", [](bench_case& c, const suite_value& v) { c.idle_ns = v.count(0, 1'000'000'000); }},
      {"steps", set_steps},
      {"last_step_only", [](bench_case& c, const suite_value& v) { c.last_step_only = v.flag(); }},
      {"threads", [](bench_case& c, const suite_value& v) { c.threads = threads_of(v, 1); }},
      {"readers", [](bench_case& c, const suite_value& v) { c.readers = threads_of(v, 0); }},
      {"writers", [](bench_case& c, const suite_value& v) { c.writers = threads_of(v, 0); }},
      {"memory_node", [](bench_case& c, const suite_value& v) { c.memory_node = v.node(); }},
      {"thread_node", [](bench_case& c, const suite_value& v) { c.thread_node = v.node(); }},
      {"warm_up_seconds", [](bench_case& c, const suite_value& v) { c.warm_up_seconds = v.number(); }},
      {"seconds", [](bench_case& c, const suite_value& v) { c.seconds = v.number(); }},
      {"samples", [](bench_case& c, const suite_value& v) { c.samples = v.count(1, std::uint64_t{1} << 40); }},
      {"min_repetitions", [](bench_case& c, const suite_value& v) { c.min_repetitions = threads_of(v, 1); }},
      {"max_repetitions", [](bench_case& c, const suite_value& v) { c.max_repetitions = threads_of(v, 1); }},
  };
  return all;
}

}  // namespace

const case_field* find_field(std::string_view key) {
  const auto found =
      std::find_if(fields().begin(), fields().end(), [key](const case_field& f) { return f.key == key; });
  return found == fields().end() ? nullptr : &*found;
}

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for (const case_field& f : fields()) names.push_back(f.key);
  return names;
}

}  // namespace pmlab::microbench
