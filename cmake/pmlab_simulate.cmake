# Simulated code: targets whose loads, stores, flushes and fences the simulated machine sees. docs/instrument.md.
#
#   pmlab_simulate(target)         compiles any target so; an executable becomes the machine of its own code
#   pmlab_hosts_simulated(target)  an executable that loads simulated libraries: it holds the machine and exports it
#
# Both need the static library `pmlab_machine` by the time that CMake generates.
set(PMLAB_INSTRUMENT_FOLDER ${CMAKE_CURRENT_LIST_DIR}/../checker/simulator/instrument)
cmake_path(NORMAL_PATH PMLAB_INSTRUMENT_FOLDER)

# The flags that are needed `when` (first word of a line of flags.txt).
function(pmlab_instrument_flags when result)
  file(STRINGS ${PMLAB_INSTRUMENT_FOLDER}/flags.txt lines REGEX "^${when} ")
  set(flags)
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[a-z]+ +" "" flag "${line}")
    string(REPLACE "@here@" "${PMLAB_INSTRUMENT_FOLDER}" flag "${flag}")
    list(APPEND flags "${flag}")
  endforeach()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# Names the state of the wrapper in every command, so that its output is rebuilt when it changes, also by
# build tools and compiler caches that know nothing of it.
function(pmlab_instrument_state result)
  set(state "")
  foreach(file as prelude.h flags.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PMLAB_INSTRUMENT_FOLDER}/${file})
    file(SHA256 ${PMLAB_INSTRUMENT_FOLDER}/${file} hash)
    string(APPEND state ${hash})
  endforeach()
  string(SHA256 state ${state})
  string(SUBSTRING ${state} 0 12 state)
  set(${result} ${state} PARENT_SCOPE)
endfunction()

function(pmlab_simulate target)
  if(PMLAB_SANITIZE)
    message(FATAL_ERROR "${target}: simulated code cannot be built with a sanitizer; leave PMLAB_SANITIZE empty")
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    pmlab_instrument_flags(clang compiler_flags)
  else()
    pmlab_instrument_flags(gnu compiler_flags)
  endif()
  pmlab_instrument_flags(compile compile_flags)
  pmlab_instrument_state(state)
  # One string each: CMake would take the second `-mllvm` for a repetition of the first.
  string(JOIN " " flags ${compile_flags} ${compiler_flags})
  string(REPLACE "\"" "\\\"" flags "${flags}")
  target_compile_options(${target} PRIVATE "SHELL:${flags}" -DPMLAB_INSTRUMENT_STATE=${state})
  set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)

  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    pmlab_hosts_simulated(${target})
  elseif(type STREQUAL "SHARED_LIBRARY" OR type STREQUAL "MODULE_LIBRARY")
    pmlab_instrument_flags(link link_flags)
    pmlab_instrument_flags(library library_flags)
    target_link_options(${target} PRIVATE ${link_flags} ${library_flags})
  endif()
endfunction()

function(pmlab_hosts_simulated target)
  pmlab_instrument_flags(link link_flags)
  target_link_options(${target} PRIVATE ${link_flags})
  # All of the machine, since its libraries call functions that the program itself does not; and exported to them.
  target_link_libraries(${target} PRIVATE "-Wl,--whole-archive,$<TARGET_FILE:pmlab_machine>,--no-whole-archive"
                                          pmlab_machine)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()
