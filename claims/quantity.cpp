// What judges compare.
#include "claims/quantity.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

std::vector<std::string> cases_of(const std::vector<quantity>& all) {
  std::vector<std::string> names;
  for (const quantity& q : all) names.insert(names.end(), q.cases.begin(), q.cases.end());
  return names;
}

std::vector<double> values_of(const std::vector<quantity>& all, const evidence& e, const lookup& figure) {
  std::vector<double> values;
  values.reserve(all.size());
  for (const quantity& q : all) values.push_back(q.of(e, figure));
  return values;
}

}  // namespace

quantity measured(const std::string& name, std::string_view path) {
  return {{name},
          [name, path = std::string(path)](const evidence&, const lookup& figure) { return figure(name, path); }};
}

quantity ratio(quantity above, quantity below) {
  std::vector<quantity> both = {std::move(above), std::move(below)};
  return {cases_of(both),
          [both](const evidence& e, const lookup& figure) { return both[0].of(e, figure) / both[1].of(e, figure); }};
}

quantity times(double factor, quantity q) {
  std::vector<std::string> cases = q.cases;
  return {std::move(cases),
          [factor, q = std::move(q)](const evidence& e, const lookup& figure) { return factor * q.of(e, figure); }};
}

quantity highest(std::vector<quantity> all) {
  return {cases_of(all), [all](const evidence& e, const lookup& figure) {
            const std::vector<double> values = values_of(all, e, figure);
            return *std::max_element(values.begin(), values.end());
          }};
}

quantity lowest(std::vector<quantity> all) {
  return {cases_of(all), [all](const evidence& e, const lookup& figure) {
            const std::vector<double> values = values_of(all, e, figure);
            return *std::min_element(values.begin(), values.end());
          }};
}

quantity largest_difference(std::vector<pair_of_quantities> pairs) {
  std::vector<quantity> differences;
  for (pair_of_quantities& p : pairs) {
    quantity r = ratio(std::move(p.first), std::move(p.second));
    std::vector<std::string> cases = r.cases;
    differences.push_back({std::move(cases), [r = std::move(r)](const evidence& e, const lookup& figure) {
                             const double value = r.of(e, figure);
                             return 100 * (std::max(value, 1 / value) - 1);
                           }});
  }
  return highest(std::move(differences));
}

quantity largest_size_near_lowest(std::vector<sized> sizes, double factor) {
  std::vector<quantity> all;
  std::vector<std::uint64_t> bytes;
  for (sized& s : sizes) {
    all.push_back(std::move(s.of));
    bytes.push_back(s.bytes);
  }
  return {cases_of(all), [all, bytes, factor](const evidence& e, const lookup& figure) {
            const std::vector<double> values = values_of(all, e, figure);
            const double limit = factor * *std::min_element(values.begin(), values.end());
            std::uint64_t largest = 0;
            for (std::size_t i = 0; i < values.size(); ++i)
              if (values[i] <= limit) largest = std::max(largest, bytes[i]);
            return static_cast<double>(largest);
          }};
}

quantity over_dram(const std::string& given, const std::string& dram) {
  return {{given, dram}, [given, dram](const evidence& e, const lookup& figure) {
            const double value = figure(given, "value") / figure(dram, "value");
            if (e.memory_of(given) == e.memory_of(dram))
              throw not_applicable(
                  fmt::format("the memory is {} itself, and this is a comparison with it", e.memory_of(dram)));
            return value;
          }};
}

quantity either(quantity first, quantity second) {
  std::vector<quantity> both = {std::move(first), std::move(second)};
  return {cases_of(both), [both](const evidence& e, const lookup& figure) {
            try {
              return both[0].of(e, figure);
            } catch (const not_applicable&) {
              return both[1].of(e, figure);
            }
          }};
}

}  // namespace pmlab::claims
