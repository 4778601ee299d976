// The indexes that can be verified.
#pragma once

#include "checker/verify/target.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pmlab::verify {

// Names of the subjects that the program was built with, in alphabetical order.
[[nodiscard]] std::vector<std::string> subject_names();

// Loads a shared object that was built by pmlab_simulate and registers a subject, or a combination
// (checker/verify/register_subject.hpp). Returns the subject's name; empty: it registers a combination. Throws
// pmlab::error: not loadable, registers nothing.
std::string load_subject(const std::string& path);

// The subject of this name, or the combination of subjects for a specification like cache(cceh,mode=parallel), with
// their instrumented halves loaded from the program's own folder if they are not loaded yet. Throws pmlab::error: there
// is none of this name (with the nearest), its shared object is missing, the specification is invalid.
[[nodiscard]] const subject& find_subject(std::string_view name);

}  // namespace pmlab::verify
