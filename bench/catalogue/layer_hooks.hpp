// The hooks of a layer over an open index around each operation: those that the index's medium needs.
#pragma once

#include <pmlab/erased/any_medium.hpp>

namespace pmlab::bench {

struct hooks {
  erased::any_medium& medium;
  void begin() const { medium.begin_operation(); }
  void end() const { medium.end_operation(); }
};

}  // namespace pmlab::bench
