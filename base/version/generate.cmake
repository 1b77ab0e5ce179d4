# SPDX-License-Identifier: Apache-2.0
# Writes version.cpp at each build, and touches it only when the commit is another one.
#
#   cmake -D SOURCE=... -D INTO=... -D VERSION=... [-D COMMIT=...] -P generate.cmake
if(NOT COMMIT)
  cmake_path(GET SOURCE PARENT_PATH above)
  # A tree unpacked inside of another checkout is not that checkout's commit.
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_CEILING_DIRECTORIES=${above}
    git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT unknown)
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.cpp.in ${INTO} @ONLY)
