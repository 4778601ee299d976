# The indexes that the programs, the simulated machine and the tests offer: bench/catalogue/indexes.cmake.
#
#   pmlab_index(NAME WHAT [HEADER HEADER] [POOL_BYTES BYTES] [KEEPS_NOTHING])
#     NAME   pmlab::indexes::NAME in <pmlab/indexes/NAME.hpp>, whose layout_name is NAME
#     WHAT   one line for `pmlab list`
#     HEADER <pmlab/indexes/HEADER.hpp>, where it is not that of its name
#     POOL_BYTES   room that a pool needs for each entry, where it is more than that of most indexes
#     KEEPS_NOTHING   it loses its entries, on purpose: its answers are not checked
#
# PMLAB_INDEXES lists them all, PMLAB_VERIFIED_INDEXES those that keep their entries.
function(pmlab_index name what)
  cmake_parse_arguments(PARSE_ARGV 2 this "KEEPS_NOTHING" "HEADER;POOL_BYTES" "")
  if(NOT this_HEADER)
    set(this_HEADER ${name})
  endif()
  list(APPEND PMLAB_INDEXES ${name})
  if(this_KEEPS_NOTHING)
    set(PMLAB_INDEX_${name}_KEEPS nothing PARENT_SCOPE)
  else()
    set(PMLAB_INDEX_${name}_KEEPS entries PARENT_SCOPE)
    list(APPEND PMLAB_VERIFIED_INDEXES ${name})
  endif()
  set(PMLAB_INDEX_${name}_WHAT "${what}" PARENT_SCOPE)
  set(PMLAB_INDEX_${name}_POOL_BYTES ${this_POOL_BYTES} PARENT_SCOPE)
  set(PMLAB_INDEX_${name}_HEADER ${this_HEADER} PARENT_SCOPE)
  set(PMLAB_INDEXES "${PMLAB_INDEXES}" PARENT_SCOPE)
  set(PMLAB_VERIFIED_INDEXES "${PMLAB_VERIFIED_INDEXES}" PARENT_SCOPE)
endfunction()

# Sets `result` to the path of a source made from `template`, with `index` for @index@.
function(pmlab_source_for index template result)
  set(what "${PMLAB_INDEX_${index}_WHAT}")
  set(keeps ${PMLAB_INDEX_${index}_KEEPS})
  set(header ${PMLAB_INDEX_${index}_HEADER})
  set(room "")
  if(PMLAB_INDEX_${index}_POOL_BYTES)
    set(room ", ${PMLAB_INDEX_${index}_POOL_BYTES}")
  endif()
  cmake_path(GET template STEM part)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${part}/${index}.cpp)
  configure_file(${template} ${source} @ONLY)
  set(${result} ${source} PARENT_SCOPE)
endfunction()
