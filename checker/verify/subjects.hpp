// The indexes that can be verified.
#pragma once

#include "checker/verify/target.hpp"

#include <string>
#include <string_view>

namespace pmlab::verify {

// Loads a shared object that was built by pmlab_simulate and registers a subject, or a combination
// (checker/verify/register_subject.hpp). Returns the subject's name; empty: it registers a combination. Throws
// pmlab::error: not loadable, registers nothing, or is the half of a subject whose other half is missing.
std::string load_subject(const std::string& path);

// The subject of this name, or the combination of subjects for a specification like cache(cceh,mode=parallel), with
// their objects loaded from the folder beside the program, if they are not loaded yet. Throws pmlab::error: no subject
// has this name (with the nearest), the specification is invalid.
[[nodiscard]] const subject& find_subject(std::string_view name);

// The subject of this name with `open_on_host` for so many hosts: each one has its own copy of the shared object, so
// its globals, statics and thread-local objects are its own. `as_is`: also an index that does not say that hosts may
// share it. Throws pmlab::error: it is no index, or hosts cannot share it, or its object cannot be loaded again.
const subject& open_on_hosts(std::string_view name, unsigned hosts, bool as_is);

}  // namespace pmlab::verify
