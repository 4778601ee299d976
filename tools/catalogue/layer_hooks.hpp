// What something made of an open index does around each operation: what the index's medium wants.
#pragma once

#include <pmlab/erased/any_medium.hpp>

namespace pmlab::bench {

struct hooks {
  erased::any_medium& medium;
  void begin() const { medium.begin_operation(); }
  void end() const { medium.end_operation(); }
};

}  // namespace pmlab::bench
