// All claims about indexes, and the quantities that several of them use.
#include "claims/indexes.hpp"
#include "claims/result_set.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace pmlab::claims {

const std::vector<claim>& index_claims() {
  static const std::vector<claim> all = [] {
    std::vector<claim> made = hybrid_claims();
    std::vector<claim> more = cache_claims();
    std::move(more.begin(), more.end(), std::back_inserter(made));
    made.push_back(adaptive_claim());
    return made;
  }();
  return all;
}

namespace detail {

quantity of_index(std::string_view experiment, std::string_view index, std::string_view threads, std::string_view phase,
                  std::string_view path) {
  return measured(case_name(experiment, index, threads, phase), path);
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
