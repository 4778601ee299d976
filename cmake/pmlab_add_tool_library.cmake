# pmlab_add_tool_library(NAME SOURCES ... DIFFERS ... PUBLIC ... PRIVATE ...): a library of pmlab's own programs, for
# both of them.
#
#   NAME            for pmlab itself
#   NAME_simulated  for the program that has the simulated machine (PMLAB_SIMULATED, and the platform's header of the
#                   library): its clock is virtual. Built only if needed.
#
# SOURCES are compiled once. DIFFERS are compiled for each of the two: sources that read a clock, pin
# threads or asks the CPU. Where a library of PUBLIC or PRIVATE comes for both, each of the two links its own.
function(pmlab_add_tool_library name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "" "SOURCES;DIFFERS;PUBLIC;PRIVATE")
  add_library(${name}_objects OBJECT ${given_SOURCES})
  target_link_libraries(${name}_objects PRIVATE ${given_PUBLIC} ${given_PRIVATE} pmlab_options)
  pmlab_one_unit(${name}_objects)

  add_library(${name} STATIC $<TARGET_OBJECTS:${name}_objects> ${given_DIFFERS})
  target_link_libraries(${name} PUBLIC ${given_PUBLIC} PRIVATE ${given_PRIVATE} pmlab_options)
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})

  add_library(${name}_simulated STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${name}_objects> ${given_DIFFERS})
  foreach(visibility PUBLIC PRIVATE)
    foreach(library IN LISTS given_${visibility})
      if(TARGET ${library}_simulated)
        set(library ${library}_simulated)
      endif()
      target_link_libraries(${name}_simulated ${visibility} ${library})
    endforeach()
  endforeach()
  target_link_libraries(${name}_simulated PRIVATE pmlab_options)
  target_include_directories(${name}_simulated PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name}_simulated PUBLIC
    PMLAB_SIMULATED=1 "PMLAB_PLATFORM_HEADER=\"checker/simulator/platform.hpp\"")
endfunction()
