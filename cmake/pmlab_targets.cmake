# The libraries that consumers link, and the flags of our own targets.
#
#   pmlab::pmlab     headers; needs nothing but the standard library (medium dram)
#   pmlab::jemalloc  + jemalloc and libnuma                          (medium jemalloc_dram)
#   pmlab::pmem      + libpmemobj and libpmem                        (medium pmem)
#   pmlab_options    warnings, sanitizers, tuning of pmlab's own programs; never installed
#   pmlab_portable_options   the same without tuning: the same figures on every x86-64 machine
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(pmlab INTERFACE)
add_library(pmlab::pmlab ALIAS pmlab)
target_compile_features(pmlab INTERFACE cxx_std_20)
target_include_directories(pmlab INTERFACE $<BUILD_INTERFACE:${PMLAB_INCLUDE_TREE}> $<INSTALL_INTERFACE:include>)
target_link_libraries(pmlab INTERFACE Threads::Threads)

pkg_check_modules(JEMALLOC IMPORTED_TARGET jemalloc)
pkg_check_modules(NUMA IMPORTED_TARGET numa)
if(JEMALLOC_FOUND AND NUMA_FOUND)
  add_library(pmlab_jemalloc INTERFACE)
  add_library(pmlab::jemalloc ALIAS pmlab_jemalloc)
  target_link_libraries(pmlab_jemalloc INTERFACE pmlab PkgConfig::JEMALLOC PkgConfig::NUMA)
endif()

pkg_check_modules(PMEMOBJ IMPORTED_TARGET libpmemobj libpmem)
find_path(PMEMOBJ_CPP_INCLUDE libpmemobj++/pool.hpp)
if(PMEMOBJ_FOUND AND PMEMOBJ_CPP_INCLUDE)
  add_library(pmlab_pmem INTERFACE)
  add_library(pmlab::pmem ALIAS pmlab_pmem)
  target_include_directories(pmlab_pmem SYSTEM INTERFACE ${PMEMOBJ_CPP_INCLUDE})
  target_link_libraries(pmlab_pmem INTERFACE pmlab PkgConfig::PMEMOBJ)
endif()

add_library(pmlab_portable_options INTERFACE)
target_compile_options(pmlab_portable_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
add_library(pmlab_options INTERFACE)
target_compile_options(pmlab_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -march=native)
if(PMLAB_SANITIZE)
  target_compile_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(pmlab_options INTERFACE -fsanitize=${PMLAB_SANITIZE})
endif()
