# SPDX-License-Identifier: Apache-2.0
# Compiler flags of our own targets. They hang on the interface target ka_flags, never on the
# directory, so that a third party's headers and sources are never judged by them.
add_library(ka_flags INTERFACE)

target_compile_options(ka_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Wsuggest-override -Wformat=2 -Wimplicit-fallthrough -Werror
  # Members that a designated initializer leaves out have their defaults; that is what it is for.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++, optimising, sees frees of shifted pointers inside std::vector (12), and coroutine frames of Asio that are freed by
  # another function than made them (14), where there are none.
  target_compile_options(ka_flags INTERFACE -Wno-free-nonheap-object -Wno-mismatched-new-delete)
  # g++ 12, optimising, sees an overlapping copy where a one-character literal is assigned to a std::string (GCC bug 105329).
  target_compile_options(ka_flags INTERFACE -Wno-restrict)
  target_compile_options(ka_flags INTERFACE -Wduplicated-cond -Wlogical-op -fcoroutines)
  if(KA_UNITY)
    # g++ takes every included file for a header, and in a unity build all sources are included.
    target_compile_options(ka_flags INTERFACE -Wno-subobject-linkage)
  endif()
else()
  # libstdc++ 12's own stable_sort uses what it deprecates, and clang reports it where it is used.
  target_compile_options(ka_flags INTERFACE -Wno-deprecated-declarations)
endif()

target_compile_definitions(ka_flags INTERFACE _GLIBCXX_ASSERTIONS)

if(KA_SANITIZE)
  target_compile_options(ka_flags INTERFACE -fsanitize=${KA_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(ka_flags INTERFACE -fsanitize=${KA_SANITIZE})
  if(KA_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio's scheduler has fences, which the thread sanitizer does not follow.
    target_compile_options(ka_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(KA_COVERAGE)
  target_compile_options(ka_flags INTERFACE --coverage)
  target_link_options(ka_flags INTERFACE --coverage)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND NOT KA_SANITIZE)
  include(CheckCXXCompilerFlag)
  include(CheckCXXSourceCompiles)
  # Level 3 needs a compiler and a libc that have it: libc warns where one of the two has not.
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_cxx_source_compiles("#include <string.h>
    int main() { return 0; }" KA_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  # Indirect jumps and returns go only where the program means them to: x86's CET, arm64's BTI and signed return addresses.
  check_cxx_compiler_flag(-fcf-protection=full KA_HAS_CF_PROTECTION)
  check_cxx_compiler_flag(-mbranch-protection=standard KA_HAS_BRANCH_PROTECTION)
  target_compile_options(ka_flags INTERFACE
    -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${KA_HAS_FORTIFY_3}>,3,2>
    $<$<BOOL:${KA_HAS_CF_PROTECTION}>:-fcf-protection=full>
    $<$<BOOL:${KA_HAS_BRANCH_PROTECTION}>:-mbranch-protection=standard>
    -fstack-protector-strong -fstack-clash-protection -fPIE)
  target_link_options(ka_flags INTERFACE -Wl,-z,relro,-z,now)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  include(CheckPIESupported)
  check_pie_supported()
endif()
# Coverage counters for libFuzzer, in the rooms and the fuzz targets: tests do without.
add_library(ka_counters INTERFACE)
if(KA_FUZZ)
  target_compile_options(ka_counters INTERFACE -fsanitize=fuzzer-no-link)
endif()

# What is shipped is linked by the default linker; links of all others, a hundred in a build, by the fastest.
if(NOT CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  find_program(KA_MOLD mold)
  if(KA_MOLD)
    target_link_options(ka_flags INTERFACE -fuse-ld=mold)
  endif()
endif()

# ka_do_not_optimise(SOURCES...): what uses CLI11 costs seconds of optimiser time and runs once: it is optimised only in
# what is shipped.
function(ka_do_not_optimise)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS $<$<CONFIG:Debug>:-O0> SKIP_PRECOMPILE_HEADERS ON)
endfunction()
