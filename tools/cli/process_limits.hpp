// Limits of the process (ulimit).
#pragma once

namespace pmlab::cli {

// With ulimit -f: a write beyond it is an error, "File too large", as one to a full device is. Otherwise it is a
// signal, which ends the program and leaves its unfinished files behind. Programs that this one starts get the usual
// signal.
void report_file_size_limit() noexcept;

// With ulimit -s: the program and its threads need some stack. Throws pmlab::error: the limit is less.
void check_stack_limit();

}  // namespace pmlab::cli
