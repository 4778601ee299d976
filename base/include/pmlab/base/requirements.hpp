// The language that every header of the library needs. A compiler with another one stops here, at one line, and
// not at the first words of each header that it does not know.
#pragma once

#if __cplusplus < 202002L
#error pmlab needs C++20: compile with -std=c++20 or later, by g++ 12, clang++ 14 or later (CMake: CXX_STANDARD 20)
// A header that there is not: an #error alone lets the compiler go on.
#define PMLAB_STOP "compilation stops here"
#elif !defined(__cpp_exceptions)
#error pmlab needs exceptions, by which its headers report failures: compile without -fno-exceptions
// As above.
#define PMLAB_STOP "compilation stops here"
#endif

#if defined(PMLAB_STOP)
#include PMLAB_STOP
#endif
