# Stands in for vcpkg, where it is not available: the functions that pmlab's port calls, and what they do to files.
#   cmake -D PORT_FOLDER=... -D WORK=... -D PREFIX=... -P vcpkg_stand_in.cmake
# A function that the port calls and that is not here is an error.
set(PORT pmlab)
set(CURRENT_PORT_DIR ${PORT_FOLDER})
set(CURRENT_BUILDTREES_DIR ${WORK})
set(CURRENT_PACKAGES_DIR ${PREFIX})

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "${ARGV}: ${status}")
  endif()
endfunction()

function(vcpkg_extract_source_archive result)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "ARCHIVE" "")
  file(MAKE_DIRECTORY ${WORK}/source)
  file(ARCHIVE_EXTRACT INPUT ${given_ARCHIVE} DESTINATION ${WORK}/source)
  file(GLOB unpacked ${WORK}/source/*)  # vcpkg, too, gives the only folder at the top of an archive
  set(${result} ${unpacked} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 given "" "SOURCE_PATH" "OPTIONS")
  if(NOT VCPKG_BUILD_TYPE STREQUAL "release")
    message(FATAL_ERROR "this port is to be built once")
  endif()
  run(${CMAKE_COMMAND} -S ${given_SOURCE_PATH} -B ${WORK}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
      -DCMAKE_INSTALL_PREFIX=${PREFIX} -DCMAKE_INSTALL_LIBDIR=lib ${given_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run(${CMAKE_COMMAND} --build ${WORK}/build --target install)
endfunction()

# Moves the files for find_package to share/, which is one folder less below the prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 given "" "CONFIG_PATH" "")
  file(MAKE_DIRECTORY ${PREFIX}/share)
  file(RENAME ${PREFIX}/${given_CONFIG_PATH} ${PREFIX}/share/${PORT})
  file(GLOB files ${PREFIX}/share/${PORT}/*.cmake)
  set(up [[get_filename_component(_IMPORT_PREFIX "${_IMPORT_PREFIX}" PATH)]])
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "${up}\n${up}\n${up}" "${up}\n${up}" text "${text}")
    string(REPLACE [[${CMAKE_CURRENT_LIST_DIR}/../../../]] [[${CMAKE_CURRENT_LIST_DIR}/../../]] text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 given "" "" "FILE_LIST")
  file(COPY_FILE ${given_FILE_LIST} ${PREFIX}/share/${PORT}/copyright)
endfunction()

include(${PORT_FOLDER}/portfile.cmake)
if(NOT EXISTS ${PREFIX}/share/${PORT}/copyright OR EXISTS ${PREFIX}/debug)
  message(FATAL_ERROR "vcpkg's checks after a build would fail")
endif()
