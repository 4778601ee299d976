# What a build may be without: the one list of it, and the one place where it is looked for.
#
#   pmlab_optional(ID TITLE PACKAGE
#                  HEADER FILE [LIBRARY NAME] | FIND NAME TARGET NAME | PROGRAM FILE
#                  [INDEXES NAME...] [STORES NAME...] [MORE TEXT])
#     ID        pmlab::with_ID is a target where the package is there, to be linked by all that needs it
#     PACKAGE   its name in Debian; of group optional in scripts/packages.txt
#     PROGRAM   nothing is built with it: pmlab looks for it on PATH when it is used
#     INDEXES, STORES, MORE   the parts that are left out without it
#
# The program knows the list, too: pmlab_optional_packages writes it as a source of bench/support/optional_packages.hpp.
set(PMLAB_WITHOUT "" CACHE STRING "IDs of optional packages to be left out although they are there; all: each of them")

function(pmlab_optional id title package)
  cmake_parse_arguments(PARSE_ARGV 3 this "" "HEADER;LIBRARY;FIND;TARGET;PROGRAM;MORE" "INDEXES;STORES")
  set(brought)
  foreach(kind IN ITEMS index:indexes:INDEXES store:stores:STORES)
    string(REPLACE ":" ";" kind ${kind})
    list(POP_FRONT kind one several key)
    list(LENGTH this_${key} count)
    list(JOIN this_${key} ", " names)
    if(count EQUAL 1)
      list(APPEND brought "${one} ${names}")
    elseif(count GREATER 1)
      list(APPEND brought "${several} ${names}")
    endif()
  endforeach()
  list(APPEND brought ${this_MORE})
  list(JOIN brought ", " brought)

  set(library)
  set(is_built_in false)
  if(NOT this_PROGRAM)
    set_property(GLOBAL APPEND PROPERTY PMLAB_OPTIONAL_IDS ${id})
    string(MAKE_C_IDENTIFIER ${id} variable)
    string(TOUPPER ${variable} variable)
    set(why "not found")
    if(id IN_LIST PMLAB_WITHOUT OR PMLAB_WITHOUT STREQUAL "all")
      set(why "hidden by PMLAB_WITHOUT")
    elseif(this_FIND)
      find_package(${this_FIND} QUIET)
      if(TARGET ${this_TARGET})
        set(is_built_in true)
        set(library ${this_TARGET})
      endif()
    else()
      find_path(PMLAB_${variable}_INCLUDE ${this_HEADER})
      mark_as_advanced(PMLAB_${variable}_INCLUDE)
      if(this_LIBRARY)
        find_library(PMLAB_${variable}_LIBRARY ${this_LIBRARY})
        mark_as_advanced(PMLAB_${variable}_LIBRARY)
        set(library ${PMLAB_${variable}_LIBRARY})
      endif()
      if(PMLAB_${variable}_INCLUDE AND (library OR NOT this_LIBRARY))
        set(is_built_in true)
      endif()
    endif()
    if(is_built_in)
      # Imported: its headers count as system headers, without warnings.
      add_library(pmlab::with_${id} INTERFACE IMPORTED GLOBAL)
      target_link_libraries(pmlab::with_${id} INTERFACE ${library})
      if(this_HEADER)
        target_include_directories(pmlab::with_${id} INTERFACE ${PMLAB_${variable}_INCLUDE})
      endif()
    else()
      message(STATUS "${title}: ${why} (Debian's package ${package}); left out: ${brought}")
    endif()
  endif()

  list(JOIN this_INDEXES "\", \"" indexes)
  list(JOIN this_STORES "\", \"" stores)
  foreach(names IN ITEMS indexes stores)
    if(${names})
      set(${names} "\"${${names}}\"")
    endif()
  endforeach()
  string(JOIN ", " fields "\"${title}\"" "\"${package}\"" "\"${brought}\"" "{${indexes}}" "{${stores}}"
         "\"${this_PROGRAM}\"" ${is_built_in})
  set_property(GLOBAL APPEND_STRING PROPERTY PMLAB_OPTIONAL_TABLE "    {${fields}},\n")
  set(PMLAB_WITH_${id}_INDEXES ${this_INDEXES} PARENT_SCOPE)
endfunction()

# Sets `result` to the path of the source that defines pmlab::bench::optional_packages.
set(PMLAB_OPTIONAL_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/optional_packages.cpp.in)
function(pmlab_optional_packages result)
  get_property(packages GLOBAL PROPERTY PMLAB_OPTIONAL_TABLE)
  configure_file(${PMLAB_OPTIONAL_TEMPLATE} ${CMAKE_CURRENT_BINARY_DIR}/optional_packages_of_build.cpp @ONLY)
  set(${result} ${CMAKE_CURRENT_BINARY_DIR}/optional_packages_of_build.cpp PARENT_SCOPE)
endfunction()

pmlab_optional(libpmemobj-cpp libpmemobj-cpp libpmemobj-cpp-dev HEADER libpmemobj++/pool.hpp
               INDEXES pmdk_hash pmdk_radix pmdk_skiplist)
pmlab_optional(tbb oneTBB libtbb-dev FIND TBB TARGET TBB::tbb INDEXES tbb_hash)
pmlab_optional(rocksdb RocksDB librocksdb-dev HEADER rocksdb/db.h LIBRARY rocksdb
               STORES rocksdb rocksdb_meta rocksdb_meta_deferred)
pmlab_optional(leveldb LevelDB libleveldb-dev HEADER leveldb/db.h LIBRARY leveldb STORES leveldb)
pmlab_optional(lmdb LMDB liblmdb-dev HEADER lmdb.h LIBRARY lmdb STORES lmdb)
pmlab_optional(benchmark "Google Benchmark" libbenchmark-dev FIND benchmark TARGET benchmark::benchmark
               MORE "program pmlab-microbench")
pmlab_optional(fio fio fio PROGRAM fio MORE "figures of fio beside those of `pmlab microbench --device`")

get_property(ids GLOBAL PROPERTY PMLAB_OPTIONAL_IDS)
foreach(id IN LISTS PMLAB_WITHOUT)
  if(NOT id IN_LIST ids AND NOT PMLAB_WITHOUT STREQUAL "all")
    list(JOIN ids ", " ids)
    message(FATAL_ERROR "PMLAB_WITHOUT has '${id}', which is no optional package; give some of ${ids}, or all")
  endif()
endforeach()
