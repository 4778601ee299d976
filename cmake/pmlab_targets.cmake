# The libraries that consumers link, and the flags of our own targets.
#
#   pmlab::pmlab     headers; needs nothing but the standard library (medium dram)
#   pmlab::jemalloc, pmlab::pmem, pmlab::uring   media and block devices that need more: pmlab_media_libraries.cmake
#   pmlab_options    of pmlab's own programs: warnings, sanitizers, and the repository as an include path, so that their
#                    headers are included as "tools/bench/engine.hpp"; never installed
#
# No -march: one binary runs on every x86-64, and include/pmlab/base/simd.hpp chooses by the CPU.
find_package(Threads REQUIRED)

add_library(pmlab INTERFACE)
add_library(pmlab::pmlab ALIAS pmlab)
target_compile_features(pmlab INTERFACE cxx_std_20)
target_include_directories(pmlab INTERFACE $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(pmlab INTERFACE Threads::Threads)

include(${CMAKE_CURRENT_LIST_DIR}/pmlab_media_libraries.cmake)

add_library(pmlab_options INTERFACE)
target_compile_options(pmlab_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
target_include_directories(pmlab_options INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
if(PMLAB_SANITIZE)
  target_compile_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE})
  # AddressSanitizer finds most of what these find, too, and without them a store's test compiles in half the time.
  if(PMLAB_SANITIZE MATCHES "address" AND PMLAB_SANITIZE MATCHES "undefined")
    target_compile_options(pmlab_options INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
endif()
