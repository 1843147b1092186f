# SPDX-License-Identifier: Apache-2.0
# Everything a preset may set.
option(SP_BUILD_TESTS "Build the tests" ON)
option(SP_ANALYZE "Clang's thread-safety analysis, findings are errors (clang 19)" OFF)
option(SP_SCHED "Build for the controlled scheduler instead of the operating system" OFF)
option(SP_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
option(SP_COVERAGE "Count executed lines" OFF)
option(SP_DELAYS "Compile in the delay injector" OFF)
set(SP_SANITIZE "" CACHE STRING "Sanitizers for everything, as in -fsanitize=")
set(SP_PLANT "" CACHE STRING "Name of a planted bug to compile in")
set(STREAMPOOL_NVCC "" CACHE STRING
    "nvcc to compile the CUDA kernels with; empty: the one that is found; OFF: none")
set(SP_TEST_TIMEOUT_FACTOR 1 CACHE STRING "Multiplies the time-out of every test")

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
