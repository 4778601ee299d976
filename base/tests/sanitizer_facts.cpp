// Compiled with a sanitizer, by g++ and by clang: the platform's facts tell of it. Links nothing and never runs.
#include <pmlab/base/platform.hpp>

static_assert(pmlab::platform::watches_words == WATCHES_WORDS);
static_assert(pmlab::platform::watches_heap == WATCHES_HEAP);
