# SPDX-License-Identifier: Apache-2.0
# The user's programs, the same for an installed library and for one built in the project.
add_executable(shared_c ../use_c.c)
target_link_libraries(shared_c PRIVATE streampool::shared)
add_executable(shared_cxx ../use_cxx.cpp)
target_link_libraries(shared_cxx PRIVATE streampool::shared)
add_executable(static_c ../use_c.c)
target_link_libraries(static_c PRIVATE streampool::static)
