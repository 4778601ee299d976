// A limit on the size of files (ulimit -f).
#pragma once

namespace pmlab::cli {

// A write beyond the limit is an error, "File too large", as one to a full device is. Otherwise it is a signal, which
// ends the program and leaves its unfinished files behind. Programs that this one starts get the usual signal.
void report_file_size_limit() noexcept;

}  // namespace pmlab::cli
