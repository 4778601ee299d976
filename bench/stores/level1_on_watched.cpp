// The level-1 indexes on bench::watched_medium.
#include "bench/stores/level1_openers.hpp"

namespace pmlab::store_bench {

template std::shared_ptr<erased::any_index> open_level1<bench::watched_medium>(std::string_view, bench::watched_medium&,
                                                                               std::string_view);

}  // namespace pmlab::store_bench
