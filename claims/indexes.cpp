// All claims about indexes, and the quantities that several of them use.
#include <pmlab/claims/indexes.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

std::vector<claim> every_claim() {
  std::vector<claim> all = hybrid_claims();
  std::vector<claim> more = cache_claims();
  std::move(more.begin(), more.end(), std::back_inserter(all));
  all.push_back(adaptive_claim());
  return all;
}

}  // namespace

const std::vector<claim>& index_claims() {
  static const std::vector<claim> all = every_claim();
  return all;
}

namespace detail {

quantity of_index(std::string_view experiment, std::string_view index, std::string_view threads, std::string_view phase,
                  std::string_view path) {
  return measured(fmt::format("{}/index={}/threads={}/phase={}", experiment, index, threads, phase), path);
}

quantity percent_below(quantity first, quantity second) {
  quantity share = ratio(std::move(first), std::move(second));
  std::vector<std::string> cases = share.cases;
  return {std::move(cases), [share = std::move(share)](const evidence& e, const lookup& figure) {
            constexpr double percent = 100;
            return percent * (1 - share.of(e, figure));
          }};
}

}  // namespace detail
}  // namespace pmlab::claims
