// The level-1 indexes on media::pmem.
#include "bench/stores/level1_openers.hpp"

namespace pmlab::store_bench {

template std::shared_ptr<erased::any_index> open_level1<media::pmem>(std::string_view, media::pmem&, std::string_view);

}  // namespace pmlab::store_bench
