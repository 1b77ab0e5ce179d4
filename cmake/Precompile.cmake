# SPDX-License-Identifier: Apache-2.0
# The standard headers, and Catch2 for tests, are parsed once for each set of flags instead of once for each source,
# which takes a third of a build's time. Presets for everyday tests set KA_PRECOMPILE. What is shipped is built without
# it, and clang-tidy reads without it: they find a source of the product that lacks an include.
option(KA_PRECOMPILE "Precompile the standard headers" OFF)

set(KA_PRECOMPILED_std <algorithm> <array> <chrono> <filesystem> <functional> <map> <memory> <optional> <set> <span>
  <string> <string_view> <unordered_map> <utility> <variant> <vector>)
set(KA_PRECOMPILED_catch ${KA_PRECOMPILED_std} ${CMAKE_SOURCE_DIR}/tests/catch.hpp)

# ka_precompile(TARGET std|catch FLAGS...): TARGET's sources begin with the precompiled headers. FLAGS, targets or
# options, are all that it is compiled with but for definitions (-D), in which targets that share them may differ.
function(ka_precompile target headers)
  if(NOT KA_PRECOMPILE)
    return()
  endif()
  string(MAKE_C_IDENTIFIER "ka_precompiled_${headers}_${ARGN}" owner)
  if(NOT TARGET ${owner})
    file(WRITE ${CMAKE_BINARY_DIR}/precompiled/${owner}.cpp "")
    add_library(${owner} OBJECT ${CMAKE_BINARY_DIR}/precompiled/${owner}.cpp)
    target_precompile_headers(${owner} PRIVATE ${KA_PRECOMPILED_${headers}})
    foreach(flags ${ARGN})
      if(TARGET ${flags})
        target_link_libraries(${owner} PRIVATE ${flags})
      else()
        target_compile_options(${owner} PRIVATE ${flags})
      endif()
    endforeach()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
endfunction()
