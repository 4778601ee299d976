# The libraries that consumers link, and the flags of our own targets.
#
#   pmlab::pmlab     headers; needs nothing but the standard library (medium dram)
#   pmlab::jemalloc, pmlab::pmem   media that need more: pmlab_media_libraries.cmake
#   pmlab_options    warnings and sanitizers of pmlab's own programs; never installed
#   pmlab_portable_options   the same without sanitizers
#
# No -march: one binary runs on every x86-64, and base/simd.hpp chooses by the CPU.
find_package(Threads REQUIRED)

add_library(pmlab INTERFACE)
add_library(pmlab::pmlab ALIAS pmlab)
target_compile_features(pmlab INTERFACE cxx_std_20)
target_include_directories(pmlab INTERFACE $<BUILD_INTERFACE:${PMLAB_INCLUDE_TREE}> $<INSTALL_INTERFACE:include>)
target_link_libraries(pmlab INTERFACE Threads::Threads)

include(${CMAKE_CURRENT_LIST_DIR}/pmlab_media_libraries.cmake)

add_library(pmlab_portable_options INTERFACE)
target_compile_options(pmlab_portable_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
add_library(pmlab_options INTERFACE)
target_compile_options(pmlab_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(PMLAB_SANITIZE)
  target_compile_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE})
endif()
