# SPDX-License-Identifier: Apache-2.0
# The options of presets and parent projects. In a parent project (add_subdirectory, FetchContent)
# the defaults build only the libraries and install nothing.
option(STREAMPOOL_BUILD_PROGRAM "Build the program streampool" ${PROJECT_IS_TOP_LEVEL})
option(STREAMPOOL_BUILD_TESTS "Build the tests, examples and benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(STREAMPOOL_INSTALL "Add to what `cmake --install` installs" ${PROJECT_IS_TOP_LEVEL})
option(SP_ANALYZE "Clang's thread-safety analysis, findings are errors (clang 19)" OFF)
option(SP_SCHED "Build for the controlled scheduler instead of the operating system" OFF)
option(SP_FUZZ "Build the fuzz targets with libFuzzer (clang)" OFF)
option(SP_EMULATED "For QEMU's user mode, which does not order sequentially consistent stores" OFF)
option(SP_COVERAGE "Count executed lines" OFF)
option(SP_DELAYS "Compile in the delay injector" OFF)
set(SP_SANITIZE "" CACHE STRING "Sanitizers for everything, as in -fsanitize=")
# Off where kernels are compiled to be checked, or run little: half of a build is their optimisation.
option(SP_FAST_KERNELS "Optimise kernels more than the rest" ON)
# Fewer where a build is not to test kernels: those of three sets are two fifths of its time.
set(SP_KERNEL_ISAS "portable;avx2;avx512;neon" CACHE STRING
    "Instruction sets to compile the kernels for, of those of the processor; portable is one of them")
# So that the bodies of 16 lanes are tested on processors without AVX-512, and by AddressSanitizer,
# which does not look into masked loads (in the preset asan with SP_KERNEL_ISAS=portable;avx2;avx512).
option(SP_AVX512_BY_AVX2 "Compile the kernels for AVX-512 to use pairs of AVX2's registers; for tests" OFF)
# Hundreds of programs, each with a copy of an instrumented library, take 20 GB and the time to link them.
option(SP_SHARED_TESTS "The shared library exports all its symbols; tests link it, not the static one" OFF)
option(SP_PLANTS "Compile in all planted bugs; STREAMPOOL_PLANT enables one" OFF)
# On in every preset but release, where `make WERROR=ON` sets it.
option(SP_WERROR "Warnings are errors" OFF)
set(STREAMPOOL_NVCC "" CACHE STRING
    "nvcc to compile the CUDA kernels with; empty: search for it; OFF: none")
# Those of them that nvcc knows. Each takes two minutes of a core.
set(STREAMPOOL_CUDA_ARCHITECTURES 75 80 86 89 90 CACHE STRING
    "GPUs to compile the CUDA kernels for, as their compute capabilities times ten")
set(SP_TEST_TIMEOUT_FACTOR 1 CACHE STRING "Multiplies the time-out of every test")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
