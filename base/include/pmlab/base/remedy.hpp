// What a user can do about an error of the system.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cerrno>

namespace pmlab {

// Returns the remedy for `number`, a value of errno, where that names the cause: a limit of the process, of the machine
// or of the file system. Other numbers have several causes: `otherwise`.
inline const char* remedy_for(int number, const char* otherwise) noexcept {
  switch (number) {
    case EMFILE: return "let this process open more files (ulimit -n)";
    case ENFILE: return "end programs that have many files open, or let this machine have more (sysctl fs.file-max)";
    case ENOMEM: return "free some memory, or let this process have more (ulimit -v)";
    case EFBIG: return "let this process write longer files (ulimit -f), or name a path on another file system";
    case ENOSPC: return "free some space there, or name a path on another file system";
    case EDQUOT: return "free some space of this user's there, or name a path on another file system";
    case EROFS: return "name a path on a file system that can be written to";
    case ENAMETOOLONG: return "give a shorter name";
    case ELOOP: return "mend the links on the path: they lead in a circle";
    default: return otherwise;
  }
}

}  // namespace pmlab
