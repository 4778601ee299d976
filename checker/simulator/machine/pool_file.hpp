// The pool files of third-party libraries: a library that maps one gets a memory of the machine.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"

#include <string>

namespace pmlab::simulator {

// From now on, mappings of the file `path` (and of files below it, if it is a folder) are `memory`, at its address. The
// file itself keeps its size and nothing else. nullptr: they are the file's own again. Throws std::runtime_error if too
// many files are served.
void serve_file(const std::string& path, persistent_memory* memory);

}  // namespace pmlab::simulator
