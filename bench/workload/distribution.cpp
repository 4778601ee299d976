#include "bench/workload/distribution.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/workload/numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace pmlab::workload {

namespace {

struct known_distribution {
  std::string_view name;
  distribution_kind kind;
  double usual;  // the default parameter; 0: it has none
};

constexpr std::array known = {
    known_distribution{"uniform", distribution_kind::uniform, 0},
    known_distribution{"zipfian", distribution_kind::zipfian, 0.99},
    known_distribution{"latest", distribution_kind::latest, 0.99},
    known_distribution{"sequential", distribution_kind::sequential, 0},
    known_distribution{"self-similar", distribution_kind::self_similar, 0.2},
};

constexpr auto known_names = [] {
  std::array<std::string_view, known.size()> names;
  std::transform(known.begin(), known.end(), names.begin(), [](const known_distribution& d) { return d.name; });
  return names;
}();

constexpr double largest_theta = 10;

// How often a sampler draws to find an existing record.
constexpr int most_draws = 64;

[[nodiscard]] double parse_parameter(const known_distribution& shape, std::string_view text, std::string_view whole) {
  const std::string problem = "distribution '" + std::string(whole) + "': ";
  if (shape.usual == 0) throw error(problem + std::string(shape.name) + " takes no parameter", "leave it out");
  const std::optional<double> value = parse_number(text);
  if (!value)
    throw error(problem + "'" + std::string(text) + "' is not a number",
                "write it as in " + distribution{shape.kind, shape.usual}.name());
  const bool share = shape.kind == distribution_kind::self_similar;
  if (share && !(*value > 0 && *value <= 0.5))
    throw error(problem + "the share of popular records must be more than 0 and at most 0.5",
                "self-similar:0.2 gives 80 % of the requests to 20 % of the records");
  if (!share && !(*value >= 0 && *value <= largest_theta))
    throw error(problem + "the constant must be between 0 and 10", "YCSB uses " + std::string(shape.name) + ":0.99");
  return *value;
}

}  // namespace

std::string distribution::name() const {
  const auto* const shape = std::find_if(known.begin(), known.end(), [&](const auto& d) { return d.kind == kind; });
  if (shape->usual == 0) return std::string(shape->name);
  return std::string(shape->name) + ":" + format_number(parameter);
}

distribution parse_distribution(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* const shape = std::find_if(known.begin(), known.end(), [&](const auto& d) { return d.name == name; });
  if (shape == known.end())
    throw error("unknown distribution '" + std::string(text) + "'",
                "did you mean " + nearest(name, known_names) +
                    "? known: uniform, zipfian:THETA, latest, sequential, self-similar:SHARE");
  if (colon == std::string_view::npos) return {shape->kind, shape->usual};
  return {shape->kind, parse_parameter(*shape, text.substr(colon + 1), text)};
}

std::span<const std::string_view> distribution_names() noexcept { return known_names; }

sampler::sampler(const distribution& shape, std::uint64_t capacity, std::uint64_t start) noexcept
    : shape_(shape),
      scatter_(capacity),
      ranks_(capacity, shape.parameter),
      ranked_(capacity),
      next_(start),
      self_similarity_(std::log(shape.parameter) / std::log1p(-shape.parameter)) {}

std::uint64_t sampler::operator()(random_source& random, std::uint64_t records) noexcept {
  switch (shape_.kind) {
    case distribution_kind::uniform: break;
    case distribution_kind::sequential: {
      const std::uint64_t index = next_ < records ? next_ : 0;
      next_ = index + 1;
      return index;
    }
    case distribution_kind::latest:
      if (ranked_ != records) ranks_.resize(ranked_ = records);
      return records - 1 - ranks_(random);
    case distribution_kind::zipfian:
    case distribution_kind::self_similar: {
      std::uint64_t index = scatter_(rank(random));
      for (int draws = 1; index >= records && draws < most_draws; ++draws) index = scatter_(rank(random));
      return index < records ? index : index % records;
    }
  }
  return random.below(records);
}

std::uint64_t sampler::rank(random_source& random) const noexcept {
  if (shape_.kind == distribution_kind::zipfian) return ranks_(random);
  // Self-similar: the first s * size ranks are drawn with probability s^(log(1 - h) / log(h)), that is, h of the ranks
  // get 1 - h of the draws, h * h of them (1 - h) * (1 - h), and so on. Here is the inverse of that function.
  const double point = static_cast<double>(scatter_.size()) * std::pow(random.unit(), self_similarity_);
  return std::min(static_cast<std::uint64_t>(point), scatter_.size() - 1);
}

}  // namespace pmlab::workload
