# Writes build_info.cpp, if its content has changed: run by the build, so that a commit made after configuring is seen.
#   cmake -D SOURCE=... -D OUTPUT=... -D BUILD_FLAGS=... -D BUILD_VERSION=... -P build_info.cmake
find_program(GIT git)
set(BUILD_COMMIT unknown)
# The archive of a release holds the commit that it was made of; a repository around its folder is another one.
if(EXISTS ${SOURCE}/../../COMMIT)
  file(STRINGS ${SOURCE}/../../COMMIT BUILD_COMMIT LIMIT_COUNT 1)
elseif(GIT)
  execute_process(COMMAND ${GIT} describe --always --dirty --abbrev=12 WORKING_DIRECTORY ${SOURCE}
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed)
    set(BUILD_COMMIT ${described})
  endif()
endif()
configure_file(${SOURCE}/build_info.cpp.in ${OUTPUT} @ONLY)
