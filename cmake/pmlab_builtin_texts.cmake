# pmlab_builtin_texts(RESULT FILES... HEADER PATH.hpp FUNCTION NAMESPACE::NAME): files as strings of a program.
#
# Writes a source and sets RESULT to its path. It defines FUNCTION, which HEADER, a path of the repository, declares:
#
#   std::span<const pmlab::named_text> NAME() noexcept;    the files without folder and ending, in alphabetical order
#
# FILES is a pattern. A change of a file, or a new one, configures again.
set(PMLAB_BUILTIN_TEXTS_TEMPLATE ${CMAKE_CURRENT_LIST_DIR}/builtin_texts.cpp.in)

function(pmlab_builtin_texts result)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "FILES;HEADER;FUNCTION" "")
  file(GLOB files CONFIGURE_DEPENDS ${given_FILES})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(texts "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM LAST_ONLY name)
    file(READ ${file} text)
    string(APPEND texts "    {\"${name}\", R\"pmlab(${text})pmlab\"},\n")
  endforeach()
  string(REGEX REPLACE "::[a-z_]+$" "" namespace ${given_FUNCTION})
  string(REGEX REPLACE "^.*::" "" function ${given_FUNCTION})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  configure_file(${PMLAB_BUILTIN_TEXTS_TEMPLATE} ${source} @ONLY)
  set(${result} ${source} PARENT_SCOPE)
endfunction()
