# SPDX-License-Identifier: Apache-2.0
# The CUDA kernels as data of sp_ops: always their source, for a compiler at run time; if nvcc is
# found, their binaries too. Included by the CMakeLists.txt that defines sp_ops.

# In the order of the text: each file uses those before it.
set(parts
    cuda/arch/prelude.cuh
    kernel_constants.h
    cuda/arch/tiles.h
    cuda/arch/math.cuh
    cuda/elementwise/elementwise.cu
    cuda/layout/copy.cu
    cuda/conv/window.cu
    cuda/gemm/product.cuh
    cuda/gemm/square.cuh
    cuda/gemm/gemm.cu
    cuda/conv/conv.cu)
list(TRANSFORM parts PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)

set(embed ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
set(program ${CMAKE_CURRENT_BINARY_DIR}/cuda_program.cu)
set(generated ${program} ${program}.inc)
set(definitions SP_CUDA_SOURCE_BYTES="${program}.inc")
add_custom_command(
    OUTPUT ${program} ${program}.inc
    COMMAND ${CMAKE_COMMAND} -E cat ${parts} > ${program}
    COMMAND ${CMAKE_COMMAND} -DFROM=${program} -DTO=${program}.inc -P ${embed}
    DEPENDS ${parts} ${embed}
    COMMENT "Embedding the text of the CUDA kernels"
    VERBATIM)
# The tests compile it, too.
set_property(GLOBAL PROPERTY SP_CUDA_PROGRAM ${program})

if(STREAMPOOL_NVCC STREQUAL "")
    find_program(SP_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(SP_NVCC)
    set(nvcc ${SP_NVCC})
else()
    set(nvcc ${STREAMPOOL_NVCC})
endif()

if(nvcc)
    execute_process(COMMAND ${nvcc} --list-gpu-code
        OUTPUT_VARIABLE known RESULT_VARIABLE failed ERROR_QUIET)
    set(targets "")
    set(oldest "")
    foreach(arch IN ITEMS 75 80 86 89 90)
        if(known MATCHES "sm_${arch}\n")
            list(APPEND targets -gencode arch=compute_${arch},code=sm_${arch})
            if(NOT oldest)
                set(oldest ${arch})
            endif()
        endif()
    endforeach()
    execute_process(COMMAND ${nvcc} --help OUTPUT_VARIABLE help ERROR_QUIET)
    set(compress "")
    if(help MATCHES "--compress-mode") # a fifth of the size; from CUDA 12.8 on
        set(compress --compress-mode=size)
    endif()
    if(failed OR NOT oldest)
        message(WARNING "${nvcc} compiles for no processor we know: no CUDA binaries")
        set(nvcc "")
    endif()
endif()

if(nvcc)
    message(STATUS "CUDA kernels: compiled by ${nvcc}")
    set(binary ${CMAKE_CURRENT_BINARY_DIR}/cuda_program.fatbin)
    list(APPEND generated ${binary} ${binary}.inc)
    list(APPEND definitions SP_CUDA_BINARY_BYTES="${binary}.inc")
    # -fmad=false: only explicit FMAs are fused. The text includes nothing of the host compiler, so
    # any works. Later GPUs compile the PTX of the oldest one.
    add_custom_command(
        OUTPUT ${binary} ${binary}.inc
        COMMAND ${nvcc} -fatbin -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true
            -prec-sqrt=true --allow-unsupported-compiler ${targets}
            -gencode arch=compute_${oldest},code=compute_${oldest} ${compress}
            -o ${binary} ${program}
        COMMAND ${CMAKE_COMMAND} -DFROM=${binary} -DTO=${binary}.inc -P ${embed}
        DEPENDS ${program} ${embed}
        COMMENT "Compiling the CUDA kernels"
        VERBATIM)
else()
    message(STATUS "CUDA kernels: as text only (no nvcc)")
endif()

target_sources(sp_ops PRIVATE ${generated})
set_source_files_properties(cuda/cuda_program.c PROPERTIES
    COMPILE_DEFINITIONS "${definitions}"
    OBJECT_DEPENDS "${generated}")
