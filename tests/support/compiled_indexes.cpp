#include "support/compiled_indexes.hpp"

namespace pmlab::indexes {

PMLAB_INDEXES_ON_TESTED_MEDIA(template)

}  // namespace pmlab::indexes
