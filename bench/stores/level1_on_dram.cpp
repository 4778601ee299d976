// The level-1 indexes on media::dram.
#include "bench/stores/level1_openers.hpp"

namespace pmlab::store_bench {

template std::shared_ptr<erased::any_index> open_level1<media::dram>(std::string_view, media::dram&, std::string_view);

}  // namespace pmlab::store_bench
