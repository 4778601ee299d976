// Does not compile with what pmlab::base gives, which is no folder of the rooms above (tests/rooms compiles it).
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
