// The level-1 indexes on a medium that is chosen at run time.
#include "bench/stores/level1_openers.hpp"

namespace pmlab::store_bench {

template std::shared_ptr<erased::any_index> open_level1<bench::chosen_medium>(std::string_view, bench::chosen_medium&,
                                                                              std::string_view);

}  // namespace pmlab::store_bench
