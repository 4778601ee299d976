# The libraries of media and block devices that need more than the standard library: read by pmlab's own build and by
# find_package(pmlab) alike.
#
#   pmlab::jemalloc  pmlab::pmlab + jemalloc and libnuma      (medium jemalloc_dram)
#   pmlab::pmem      pmlab::pmlab + libpmemobj and libpmem    (medium pmem)
#   pmlab::uring     pmlab::pmlab + liburing                  (block device blocks::file)
#
# The checksums of pools and stores are in the header of xxHash, which is not linked.
#
# Each exists only if its dependencies are installed; pmlab_missing_for_NAME lists the missing ones.
find_package(PkgConfig QUIET)

# Sets `missing` to those of the pkg-config modules ARGN that are not there, and makes a target of each that is.
function(pmlab_find_modules missing)
  set(not_found)
  foreach(module IN LISTS ARGN)
    if(NOT PKG_CONFIG_FOUND)
      list(APPEND not_found ${module})
      continue()
    endif()
    pkg_check_modules(pmlab_${module} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT pmlab_${module}_FOUND)
      list(APPEND not_found ${module})
    endif()
  endforeach()
  set(${missing} "${not_found}" PARENT_SCOPE)
endfunction()

pmlab_find_modules(pmlab_missing_for_jemalloc jemalloc numa)
if(NOT pmlab_missing_for_jemalloc AND NOT TARGET pmlab::jemalloc)
  add_library(pmlab::jemalloc INTERFACE IMPORTED GLOBAL)
  target_link_libraries(pmlab::jemalloc INTERFACE pmlab::pmlab PkgConfig::pmlab_jemalloc PkgConfig::pmlab_numa)
endif()

pmlab_find_modules(pmlab_missing_for_pmem libpmemobj libpmem libxxhash)
if(NOT pmlab_missing_for_pmem AND NOT TARGET pmlab::pmem)
  add_library(pmlab::pmem INTERFACE IMPORTED GLOBAL)
  target_link_libraries(pmlab::pmem INTERFACE pmlab::pmlab PkgConfig::pmlab_libpmemobj PkgConfig::pmlab_libpmem)
  target_include_directories(pmlab::pmem INTERFACE ${pmlab_libxxhash_INCLUDE_DIRS})
endif()

pmlab_find_modules(pmlab_missing_for_uring liburing libxxhash)
if(NOT pmlab_missing_for_uring AND NOT TARGET pmlab::uring)
  add_library(pmlab::uring INTERFACE IMPORTED GLOBAL)
  target_link_libraries(pmlab::uring INTERFACE pmlab::pmlab PkgConfig::pmlab_liburing)
  target_include_directories(pmlab::uring INTERFACE ${pmlab_libxxhash_INCLUDE_DIRS})
endif()
