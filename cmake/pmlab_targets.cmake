# The libraries that consumers link, and the flags of our own targets.
#
#   pmlab::pmlab     headers, of all rooms; needs nothing but the standard library (medium dram)
#   pmlab::base, pmlab::media, pmlab::indexes, pmlab::cache, pmlab::hybrid, pmlab::strings, pmlab::stores
#                    the headers of one room, and of those that it uses
#   pmlab::programs  the marks of a program that is verified: a header in C
#   pmlab::jemalloc, pmlab::pmem, pmlab::uring   media and block devices that need more: pmlab_media_libraries.cmake
#   pmlab_options    of pmlab's own programs: warnings, sanitizers, and the repository as an include path, so that their
#                    headers are included as "bench/engine/engine.hpp"; never installed
#
# No -march: one binary runs on every x86-64, and base/include/pmlab/base/simd.hpp chooses by the CPU.
find_package(Threads REQUIRED)

add_library(pmlab INTERFACE)
add_library(pmlab::pmlab ALIAS pmlab)

# pmlab_room(NAME [IN FOLDER] [USES ROOM...]): pmlab::NAME, the headers of FOLDER/include (of NAME/include). Its include
# directories are its own and those of the rooms that it uses, so an include that points up does not compile.
# scripts/check_layers reads these lines, too.
function(pmlab_room name)
  cmake_parse_arguments(PARSE_ARGV 1 this "" "IN" "USES")
  if(NOT this_IN)
    set(this_IN ${name})
  endif()
  add_library(pmlab_room_${name} INTERFACE)
  add_library(pmlab::${name} ALIAS pmlab_room_${name})
  set_target_properties(pmlab_room_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(pmlab_room_${name} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/${this_IN}/include>
                                                          $<INSTALL_INTERFACE:include>)
  foreach(room IN LISTS this_USES)
    target_link_libraries(pmlab_room_${name} INTERFACE pmlab_room_${room})
  endforeach()
  target_link_libraries(pmlab INTERFACE pmlab_room_${name})
  set_property(GLOBAL APPEND PROPERTY PMLAB_ROOMS ${name})
  set_property(GLOBAL PROPERTY PMLAB_ROOM_${name}_FOLDER ${this_IN})
endfunction()


# The sources of a target as one, up to ten: a build from nothing takes a third of their time then, as each has the same
# headers and templates. Names of one source must differ from those of the others: tests have a namespace for each. The
# sources behind `target` are compiled alone: they have names that others have, too.
option(PMLAB_ONE_UNIT "Compile the sources of many targets as one: quick from nothing, slow after each change" ON)
function(pmlab_one_unit target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PMLAB_ONE_UNIT} UNITY_BUILD_BATCH_SIZE 10)
  if(ARGN)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

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
