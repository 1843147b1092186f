# SPDX-License-Identifier: Apache-2.0
# Layers are object libraries sp_<layer>; library.cmake links both libraries from their objects.

# sp_add_layer(<name> [LINKS <lower layers>...] SOURCES <files>...)
function(sp_add_layer name)
    cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "LINKS;SOURCES")
    add_library(sp_${name} OBJECT ${layer_SOURCES})
    list(TRANSFORM layer_LINKS PREPEND sp_)
    target_link_libraries(sp_${name} PUBLIC sp_library_flags ${layer_LINKS})
    set_property(GLOBAL APPEND PROPERTY SP_OBJECT_TARGETS sp_${name})
endfunction()

# The bodies of the kernels: each file is compiled once per instruction set, with SP_ISA=<name>.
set(SP_ISAS portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND SP_ISAS avx2 avx512)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND SP_ISAS neon)
endif()
foreach(isa IN LISTS SP_ISAS)
    if(NOT isa IN_LIST SP_KERNEL_ISAS)
        list(REMOVE_ITEM SP_ISAS ${isa})
    endif()
endforeach()
set(SP_ISA_FLAGS_portable "")
set(SP_ISA_FLAGS_avx2 -mavx2 -mfma)
set(SP_ISA_FLAGS_avx512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512dq -mavx512vl)
if(SP_AVX512_BY_AVX2)
    set(SP_ISA_FLAGS_avx512 -mavx2 -mfma -DSP_AVX512_BY_AVX2=1)
endif()
# NEON is a part of AArch64. gcc would keep accumulators in memory: its first scheduling loads operands
# too early, and a copy of the loop for a distance of 1 leaves the other copy too few registers.
set(SP_ISA_FLAGS_neon -DSP_NEON=1
    $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>
    $<$<C_COMPILER_ID:GNU>:-fno-version-loops-for-strides>)
# Kernels read neither errno nor floating-point exception flags; these flags change no result bits.
# -fno-fast-math, which sp_flags has too, resets the two after it: CMake keeps the first of equal flags.
set(SP_KERNEL_FLAGS -fno-fast-math -fno-math-errno -fno-trapping-math -Wno-psabi)
# The stack that device/kernel.h allows. Instrumented code has larger frames.
if(NOT SP_SANITIZE AND NOT SP_SCHED)
    list(APPEND SP_KERNEL_FLAGS $<$<C_COMPILER_ID:GNU>:-Wframe-larger-than=81920>)
endif()
# Of compact kernels: loops over elements are vectorised as with -O3, but the few iterations that are
# left over stay loops. Unrolled, they would be most of a kernel's code.
set(SP_COMPACT_FLAGS -O2
    $<$<C_COMPILER_ID:GNU>:-ftree-vectorize>
    $<$<C_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>
    $<$<C_COMPILER_ID:GNU>:-funswitch-loops>)
if(SP_FAST_KERNELS)
    list(PREPEND SP_KERNEL_FLAGS -O3)
else()
    set(SP_COMPACT_FLAGS "")
endif()
# The instruction sets whose kernels no sanitizer instruments. In builds for races all of them: dispatches
# announce the ranges that kernels access (base/announce.h), instrumenting every access would be far too
# slow, and vector accesses are never instrumented. Else AVX-512: most of its accesses are masked, into
# which AddressSanitizer does not look; with SP_AVX512_BY_AVX2 it does.
set(SP_BARE_ISAS "")
if(SP_SCHED OR SP_SANITIZE MATCHES "thread")
    set(SP_BARE_ISAS ${SP_ISAS})
elseif(SP_SANITIZE AND NOT SP_AVX512_BY_AVX2)
    set(SP_BARE_ISAS avx512)
endif()
# Linked after the flags that instrument: of contrary flags the last one counts.
add_library(sp_bare_flags INTERFACE)
target_compile_options(sp_bare_flags INTERFACE -fno-sanitize=all)
# To check each sum of a pointer in kernels took half the time of the build; what is behind a buffer
# AddressSanitizer finds.
add_library(sp_pointer_flags INTERFACE)
if(SP_SANITIZE MATCHES "undefined")
    target_compile_options(sp_pointer_flags INTERFACE -fno-sanitize=pointer-overflow)
endif()

# sp_add_isa_sources(<layer> [COMPACT <files>...] [UNROLLED <files>...])
# Adds kernel files to a layer made by sp_add_layer. May be called several times.
function(sp_add_isa_sources layer)
    cmake_parse_arguments(PARSE_ARGV 1 isa "" "" "COMPACT;UNROLLED")
    set_property(SOURCE ${isa_COMPACT} APPEND PROPERTY COMPILE_OPTIONS ${SP_COMPACT_FLAGS})
    foreach(isa IN LISTS SP_ISAS)
        set(target sp_${layer}_${isa})
        if(NOT TARGET ${target})
            add_library(${target} OBJECT)
            if(NOT isa STREQUAL "portable")
                # The same source: clang-tidy checks it once.
                set_property(TARGET ${target} PROPERTY EXPORT_COMPILE_COMMANDS OFF)
            endif()
            target_link_libraries(${target} PUBLIC sp_${layer})
            if(isa IN_LIST SP_BARE_ISAS)
                target_link_libraries(${target} PRIVATE sp_bare_flags)
            else()
                target_link_libraries(${target} PRIVATE sp_pointer_flags)
            endif()
            target_compile_options(${target} PRIVATE ${SP_KERNEL_FLAGS} ${SP_ISA_FLAGS_${isa}})
            # Where there are others, the portable kernels are for old processors and for tests.
            if(isa STREQUAL "portable" AND NOT SP_ISAS STREQUAL "portable")
                target_compile_options(${target} PRIVATE ${SP_COMPACT_FLAGS})
            endif()
            target_compile_definitions(${target} PRIVATE SP_ISA=${isa})
            set_property(GLOBAL APPEND PROPERTY SP_OBJECT_TARGETS ${target})
        endif()
        target_sources(${target} PRIVATE ${isa_COMPACT} ${isa_UNROLLED})
    endforeach()
endfunction()

# sp_layer_objects(<out>): the objects of all layers, as generator expressions.
function(sp_layer_objects out)
    get_property(targets GLOBAL PROPERTY SP_OBJECT_TARGETS)
    set(objects "")
    foreach(target IN LISTS targets)
        list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endforeach()
    set(${out} ${objects} PARENT_SCOPE)
endfunction()
