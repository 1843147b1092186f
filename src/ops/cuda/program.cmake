# SPDX-License-Identifier: Apache-2.0
# The CUDA kernels as data of sp_ops: always their source, for a compiler at run time; if nvcc is
# found, their binaries too. Included by the CMakeLists.txt that defines sp_ops.

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
    set(architectures "")
    foreach(arch IN LISTS STREAMPOOL_CUDA_ARCHITECTURES)
        if(known MATCHES "sm_${arch}\n")
            list(APPEND architectures ${arch})
        endif()
    endforeach()
    list(SORT architectures COMPARE NATURAL)
    execute_process(COMMAND ${nvcc} --help OUTPUT_VARIABLE help ERROR_QUIET)
    set(compress "")
    if(help MATCHES "--compress-mode") # a fifth of the size; from CUDA 12.8 on
        set(compress --compress-mode=size)
    endif()
    if(failed OR NOT architectures)
        message(WARNING "${nvcc} compiles for none of STREAMPOOL_CUDA_ARCHITECTURES, "
            "${STREAMPOOL_CUDA_ARCHITECTURES}: no CUDA binaries")
        set(nvcc "")
    endif()
endif()

if(nvcc)
    message(STATUS "CUDA kernels: compiled by ${nvcc}")
    # -fmad=false: only explicit FMAs are fused. The text includes nothing of the host compiler, so
    # any works.
    set(compile ${nvcc} -fatbin -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true
        -prec-sqrt=true --allow-unsupported-compiler)
else()
    message(STATUS "CUDA kernels: as text only (no nvcc)")
endif()

set(embed ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
set(join ${PROJECT_SOURCE_DIR}/cmake/join.cmake)
# The library has the text without comments, compressed.
set(shorten ${PROJECT_SOURCE_DIR}/cmake/shorten.cmake)
set(deflate ${PROJECT_SOURCE_DIR}/cmake/deflate.cmake)

# The compiler's targets: those from `first` on. Later GPUs compile the PTX of the oldest one. What
# only 9.0 has (gemm/group.cuh) is in its target 90a, which compilers have from CUDA 12.0 on.
function(sp_cuda_targets first out)
    set(targets "")
    set(oldest "")
    foreach(arch IN LISTS architectures)
        if(arch GREATER_EQUAL first)
            set(target ${arch})
            if(help MATCHES "sm_${arch}a'")
                set(target ${arch}a)
            endif()
            list(APPEND targets -gencode arch=compute_${target},code=sm_${target})
            if(NOT oldest)
                set(oldest ${arch})
            endif()
        endif()
    endforeach()
    if(oldest)
        list(APPEND targets -gencode arch=compute_${oldest},code=compute_${oldest})
    endif()
    set(${out} ${targets} PARENT_SCOPE)
endfunction()

# What all programs begin with. The library has it once.
set(common cuda/arch/prelude.cuh element_ops.h pack_format.h kernel_constants.h cuda/arch/tiles.h
    cuda/arch/threads.cuh cuda/arch/number.cuh math/math_f32.h cuda/arch/math.cuh)
list(TRANSFORM common PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)

# Writes <to>, the parts joined, and <to>.inc, the same without comments as compressed bytes.
function(sp_embed_text to)
    add_custom_command(
        OUTPUT ${to} ${to}.inc
        COMMAND ${CMAKE_COMMAND} "-DFROM=${ARGN}" -DTO=${to} -P ${join}
        COMMAND ${CMAKE_COMMAND} -DFROM=${to} -DTO=${to}.short -P ${shorten}
        COMMAND ${CMAKE_COMMAND} -DFROM=${to}.short -DTO=${to}.inc -P ${deflate}
        DEPENDS ${ARGN} ${join} ${shorten} ${deflate}
        COMMENT "Embedding a text of CUDA kernels"
        VERBATIM)
endfunction()

set(prologue ${CMAKE_CURRENT_BINARY_DIR}/cuda_prologue)
sp_embed_text(${prologue}.cuh ${common})
file(CONFIGURE OUTPUT ${prologue}.c CONTENT [[
#include "ops/cuda/cuda_kernels.h"
static const unsigned char deflated[] = {
#include "@prologue@.cuh.inc"
};
const sp_gpu_text sp__cuda_prologue = {deflated, sizeof(deflated), SP_TEXT_BYTES};
]] @ONLY)
target_sources(sp_ops PRIVATE ${prologue}.c ${prologue}.cuh ${prologue}.cuh.inc)
set_source_files_properties(${prologue}.c PROPERTIES OBJECT_DEPENDS ${prologue}.cuh.inc)

# sp_add_cuda_program(<name> [FIRST <architecture>] <parts>...): the text is the parts that all
# programs have, then these; each uses those before it. No GPU before FIRST runs the program.
function(sp_add_cuda_program name)
    cmake_parse_arguments(PARSE_ARGV 1 program "" "FIRST" "")
    if(NOT program_FIRST)
        set(program_FIRST 0)
    endif()
    set(parts ${program_UNPARSED_ARGUMENTS})
    list(TRANSFORM parts PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set(program ${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}.cu)
    set(own ${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}_own.cuh)
    set(binary ${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}.fatbin)
    set(data ${CMAKE_CURRENT_BINARY_DIR}/cuda_${name}.c)
    set(generated ${program} ${own} ${own}.inc)
    string(TOUPPER SP_CUDA_${name}_KERNELS kernels)
    set(text "#define SP_NAME ${name}\n#define SP_KERNELS ${kernels}\n#define SP_SOURCE_BYTES \"${own}.inc\"\n")
    sp_embed_text(${own} ${parts})
    add_custom_command(
        OUTPUT ${program}
        COMMAND ${CMAKE_COMMAND} "-DFROM=${common};${parts}" -DTO=${program} -P ${join}
        DEPENDS ${common} ${parts} ${join}
        COMMENT "Joining the text of the CUDA kernels: ${name}"
        VERBATIM)
    set(targets "")
    if(nvcc)
        sp_cuda_targets(${program_FIRST} targets)
    endif()
    if(targets)
        string(APPEND text "#define SP_BINARY_BYTES \"${binary}.inc\"\n")
        list(APPEND generated ${binary} ${binary}.inc)
        set_property(GLOBAL APPEND PROPERTY SP_CUDA_BINARIES ${binary})
        add_custom_command(
            OUTPUT ${binary} ${binary}.inc
            COMMAND ${compile} ${targets} ${compress} -o ${binary} ${program}
            COMMAND ${CMAKE_COMMAND} -DFROM=${binary} -DTO=${binary}.inc -P ${embed}
            DEPENDS ${program} ${embed}
            COMMENT "Compiling the CUDA kernels: ${name}"
            VERBATIM)
    endif()
    file(CONFIGURE OUTPUT ${data} CONTENT "${text}#include \"ops/cuda/cuda_program.inc.h\"\n")
    target_sources(sp_ops PRIVATE ${data} ${generated})
    set_source_files_properties(${data} PROPERTIES OBJECT_DEPENDS "${generated}")
    # The tests compile them, too.
    set_property(GLOBAL APPEND PROPERTY SP_CUDA_PROGRAMS ${name})
    set_property(GLOBAL PROPERTY SP_CUDA_PROGRAM_${name} ${program})
endfunction()

sp_add_cuda_program(core
    cuda/elementwise/parts.cuh
    cuda/elementwise/integer_parts.cuh
    cuda/elementwise/elementwise.cu
    cuda/layout/parts.cuh
    cuda/layout/copy.cu
    cuda/layout/signal.cu
    cuda/conv/tap_range.cuh
    cuda/conv/window.cu
    cuda/arch/copies.cuh
    cuda/gemm/finish.cuh
    cuda/gemm/matrix.cuh
    cuda/gemm/product.cuh
    cuda/arch/cluster.cuh
    cuda/gemm/square.cuh
    cuda/gemm/square_cluster.cuh
    cuda/gemm/square_matrix.cuh
    cuda/gemm/gemm.cu
    cuda/conv/conv.cu
    cuda/conv/square.cu
    cuda/conv/direct.cu)
sp_add_cuda_program(math
    elementwise_list.h
    fused_constants.h
    math/math_f64.h
    cuda/arch/functions.cuh
    cuda/elementwise/parts.cuh
    cuda/elementwise/float_parts.cuh
    math/pow_f32.h
    math/fmod_f64.h
    cuda/elementwise/remainder.cuh
    cuda/elementwise/math.cu)
sp_add_cuda_program(trig
    math/math_f64.h
    cuda/arch/functions.cuh
    cuda/elementwise/parts.cuh
    cuda/elementwise/float_parts.cuh
    math/pow_f32.h
    math/trig_f32.h
    cuda/elementwise/trig.cu)
sp_add_cuda_program(double
    elementwise_list.h
    math/math_f64.h
    cuda/arch/functions.cuh
    cuda/elementwise/parts.cuh
    cuda/elementwise/float_parts.cuh
    math/fmod_f64.h
    cuda/elementwise/remainder.cuh
    cuda/elementwise/double.cu)
sp_add_cuda_program(integer
    cuda/elementwise/parts.cuh
    cuda/elementwise/integer_parts.cuh
    cuda/elementwise/integer.cu)
sp_add_cuda_program(cast
    elementwise_list.h
    cuda/arch/dtype.cuh
    math/half.h
    cuda/arch/half.cuh
    cuda/elementwise/parts.cuh
    cuda/elementwise/cast.cu)
sp_add_cuda_program(reduce
    reduce_constants.h
    math/math_f64.h
    math/half.h
    cuda/arch/half.cuh
    cuda/reduce/lanes.cuh
    cuda/reduce/joins.cuh
    cuda/reduce/axis_rows.cuh
    cuda/reduce/reduce.cu
    cuda/reduce/axis.cu)
sp_add_cuda_program(norm
    reduce_constants.h
    fused_constants.h
    math/math_f64.h
    math/half.h
    cuda/arch/half.cuh
    math/pow_f32.h
    cuda/arch/warp.cuh
    cuda/reduce/lanes.cuh
    cuda/reduce/joins.cuh
    cuda/reduce/axis_rows.cuh
    cuda/reduce/rows.cuh
    cuda/reduce/row_norm.cuh
    cuda/reduce/softmax.cu
    cuda/reduce/norm.cu)
sp_add_cuda_program(move
    copy_constants.h
    fused_constants.h
    cuda/arch/dtype.cuh
    cuda/arch/index.cuh
    cuda/layout/parts.cuh
    cuda/layout/gather.cu
    cuda/layout/scatter.cu
    cuda/layout/top_k.cu
    cuda/layout/look_up.cu
    cuda/layout/resize.cu
    math/grid_sample.h
    cuda/layout/grid_sample.cu)
sp_add_cuda_program(window
    reduce_constants.h
    math/half.h
    cuda/arch/half.cuh
    cuda/reduce/lanes.cuh
    cuda/conv/tap_range.cuh
    cuda/conv/pool.cu
    cuda/conv/any.cu)
sp_add_cuda_program(product
    reduce_constants.h
    math/half.h
    cuda/arch/half.cuh
    cuda/gemm/any.cu)
sp_add_cuda_program(tensor FIRST 80
    fused_constants.h
    math/half.h
    cuda/arch/half.cuh
    cuda/arch/copies.cuh
    cuda/arch/warp.cuh
    cuda/arch/tensor.cuh
    cuda/arch/cluster.cuh
    cuda/arch/mbarrier.cuh
    cuda/arch/group.cuh
    cuda/gemm/finish.cuh
    cuda/gemm/narrow_operands.cuh
    cuda/gemm/narrow.cuh
    math/near_f32.h
    cuda/gemm/narrow_scale.cuh
    cuda/gemm/narrow_finish.cuh
    cuda/gemm/group.cuh
    cuda/gemm/narrow.cu
    cuda/conv/narrow.cu
    cuda/gemm/matrix.cuh
    cuda/gemm/rounded.cuh
    cuda/gemm/rounded.cu
    cuda/reduce/joins.cuh
    cuda/attention/attention_tile.h
    cuda/attention/parts.cuh
    cuda/attention/weights.cuh
    cuda/attention/rounded.cu
    cuda/reduce/lanes.cuh
    cuda/reduce/rows.cuh
    cuda/reduce/row_norm.cuh
    cuda/reduce/row_norm_packed.cu)
sp_add_cuda_program(recurrent
    copy_constants.h
    cuda/arch/functions.cuh
    cuda/arch/index.cuh
    cuda/arch/cluster.cuh
    cuda/arch/mbarrier.cuh
    cuda/arch/inbox.cuh
    cuda/recurrent/team_size.h
    cuda/recurrent/layer.cuh
    cuda/recurrent/recurrent.cu
    cuda/recurrent/team.cuh
    cuda/recurrent/chains.cuh
    cuda/recurrent/team.cu)
sp_add_cuda_program(attention
    fused_constants.h
    cuda/arch/copies.cuh
    cuda/arch/warp.cuh
    cuda/reduce/joins.cuh
    math/near_f32.h
    cuda/attention/attention_tile.h
    cuda/attention/parts.cuh
    cuda/attention/scores.cuh
    cuda/attention/weights.cuh
    cuda/attention/attention.cu)
