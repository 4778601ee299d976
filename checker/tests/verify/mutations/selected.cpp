// The mutation of this run: PMLAB_MUTATION when the shared object is loaded; 0 is none.
#include <cstdlib>

// Constant: the instrument leaves loads of it alone, so that a planted choice is no access.
extern "C" {
extern const int pmlab_mutation;
const int pmlab_mutation = [] {
  const char* const text = std::getenv("PMLAB_MUTATION");
  return text == nullptr ? 0 : std::atoi(text);
}();
}
