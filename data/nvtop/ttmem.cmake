# SPDX-License-Identifier: GPL-3.0-or-later
#
# Adds ttmem's devices to a build of nvtop, whose sources stay as they are:
#
#     cmake -S nvtop-3.2.0 -B build -DCMAKE_PROJECT_nvtop_INCLUDE=/path/to/ttmem.cmake

cmake_minimum_required(VERSION 3.19)
set(ttmem_folder ${CMAKE_CURRENT_LIST_DIR})

# The target is not there yet; this is called when all of nvtop's own files have been read.
function(ttmem_add)
  cmake_policy(SET CMP0079 NEW)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(TTMEM_QUERY REQUIRED IMPORTED_TARGET ttmem-query)
  target_sources(nvtop PRIVATE ${ttmem_folder}/extract_gpuinfo_ttmem.c)
  target_link_libraries(nvtop PRIVATE PkgConfig::TTMEM_QUERY)
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL ttmem_add)
