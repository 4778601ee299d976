# Writes device_profile_builtin.cpp: the files of profiles/ as strings, so that a program needs no folder at run time.
# A change of a profile, or a new one, configures again.
file(GLOB profile_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../profiles/*.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile_files})
set(PMLAB_BUILTIN_PROFILES "")
foreach(profile_file IN LISTS profile_files)
  cmake_path(GET profile_file STEM LAST_ONLY profile_name)
  file(READ ${profile_file} profile_text)
  string(APPEND PMLAB_BUILTIN_PROFILES "    {\"${profile_name}\", R\"pmlab(${profile_text})pmlab\"},\n")
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/device_profile_builtin.cpp.in
               ${CMAKE_CURRENT_BINARY_DIR}/device_profile_builtin.cpp @ONLY)
