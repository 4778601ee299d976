// From an experiment to the calls of pmlab that it stands for.
#include "experiments/plan.hpp"
#include "tools/support/file_form.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/quantity.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace pmlab::experiments {
namespace {

// With what the scale puts in their places.
settings at_scale(const experiment& e, std::string_view scale) {
  settings all = e.common;
  const auto change = e.scales.find(scale);
  if (change == e.scales.end()) return all;
  const auto same_key = [](const auto& other) { return [&other](const auto& one) { return one.key == other.key; }; };
  for (const argument& a : change->second.arguments) {
    std::erase_if(all.arguments, same_key(a));
    all.arguments.push_back(a);
  }
  for (const axis& a : change->second.matrix)
    std::find_if(all.matrix.begin(), all.matrix.end(), same_key(a))->values = a.values;
  return all;
}

// Every answer is checked unless the file says why not.
void add_verification(const experiment& e, settings& s) {
  const bool said =
      std::any_of(s.arguments.begin(), s.arguments.end(), [](const argument& a) { return a.key == "verify"; });
  if (e.kind == "bench" && !said) s.arguments.push_back({.key = "verify", .values = {}, .flag = true});
}

void add_words(std::vector<std::string>& words, const argument& a) {
  const std::string option = "--" + option_of(a.key);
  if (a.flag) words.push_back(option);
  for (const std::string& value : a.values) words.insert(words.end(), {option, value});
}

double parts_of(const std::string& list) { return 1 + static_cast<double>(std::count(list.begin(), list.end(), ',')); }

// Operations in all, in thousands; a thousand more for what every call needs. A suite of microbenchmarks takes a minute
// and more.
double weight_of(const std::vector<std::string>& words) {
  constexpr double suite = 100'000;
  if (words.front() != "bench") return suite;
  const auto count = [&](std::string_view option, double otherwise) {
    const std::string text = value_of(words, option);
    return text.empty() ? otherwise : static_cast<double>(parse_count(text, std::string(option)));
  };
  const double repeats = count("--repeat", 1);
  const double phases =
      static_cast<double>(std::count(words.begin(), words.end(), "--workload")) + parts_of(value_of(words, "--phases"));
  const double operations = count("--records", 1e6) + repeats * phases * count("--operations", 1e6);
  const double runs = parts_of(value_of(words, "--index")) * parts_of(value_of(words, "--threads"));
  // A simulated operation takes some thirty times as long as one in DRAM, an emulated one about three times.
  const std::string medium = value_of(words, "--medium");
  const double slower = medium.starts_with("simulated") ? 30 : medium.starts_with("emulated") ? 3 : 1;
  return 1000 + slower * runs * operations / 1000;
}

}  // namespace

std::vector<cell> plan(const experiment& e, std::string_view scale) {
  settings s = at_scale(e, scale);
  add_verification(e, s);
  std::size_t combinations = 1;
  for (const axis& a : s.matrix) combinations *= a.values.size();
  std::vector<cell> cells;
  std::set<std::string> names;
  for (std::size_t number = 0; number < combinations; ++number) {
    cell c;
    c.experiment = e.name;
    c.words = {e.kind};
    std::size_t rest = number;
    std::size_t block = combinations;
    for (const axis& a : s.matrix) {
      block /= a.values.size();
      const std::string& value = a.values[rest / block];
      rest %= block;
      c.values.emplace_back(a.key, value);
      add_words(c.words, {.key = a.key, .values = {value}});
      if (!c.name.empty()) c.name += '_';
      c.name += file_form(value);
    }
    c.name = e.name + "/" + (c.name.empty() ? "all" : c.name);
    for (const argument& a : s.arguments) add_words(c.words, a);
    c.weight = weight_of(c.words);
    if (!names.insert(c.name).second)
      throw error(fmt::format("experiment {}: two cells are called {}", e.name, c.name),
                  "let the values of its matrix differ in letters or digits");
    cells.push_back(std::move(c));
  }
  return cells;
}

std::string value_of(const std::vector<std::string>& words, std::string_view option) {
  const auto place = std::find(words.begin(), words.end(), option);
  return place == words.end() || std::next(place) == words.end() ? std::string() : *std::next(place);
}

}  // namespace pmlab::experiments
