# SPDX-License-Identifier: Apache-2.0
#
# Stand-in: what find_package(TT-Metalium) finds in the tests. STAND_IN_LIBRARY names the library.

add_library(TT::Metalium SHARED IMPORTED)
set_target_properties(TT::Metalium PROPERTIES
  IMPORTED_LOCATION "${STAND_IN_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")
