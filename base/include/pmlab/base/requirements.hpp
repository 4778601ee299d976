// The language that every header of the library needs. A compiler with another one stops here, at one line, and
// not at the first words of each header that it does not know.
#pragma once

#if __cplusplus < 202002L
#error pmlab needs C++20: compile with -std=c++20 or later, by g++ 12, clang++ 14 or later (CMake: CXX_STANDARD 20)
#elif !defined(__cpp_exceptions)
#error pmlab needs exceptions, by which its headers report failures: compile without -fno-exceptions
#endif

// An #error alone lets the compiler go on. A header that is missing ends it.
#if __cplusplus < 202002L || !defined(__cpp_exceptions)
#include "compilation stops here"
#endif
