# SPDX-License-Identifier: Apache-2.0
# sp_flags: the flags of every file of the project. sp_library_flags: those of the library's files.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(sp_flags INTERFACE)
target_compile_options(sp_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    $<$<BOOL:${SP_WERROR}>:-Werror>
    # No contraction of a*b+c: the same bits on every instruction set. Nor what a user's flags allow.
    -fno-fast-math -ffp-contract=off)
target_compile_definitions(sp_flags INTERFACE _GNU_SOURCE)
target_include_directories(sp_flags INTERFACE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(sp_flags INTERFACE Threads::Threads)

# The folder of backend_types.h and backend_inline.h selects the back end of base.
if(SP_SCHED)
    target_include_directories(sp_flags INTERFACE ${PROJECT_SOURCE_DIR}/verify/sched/backend)
    target_compile_definitions(sp_flags INTERFACE SP_SCHED=1)
else()
    target_include_directories(sp_flags INTERFACE ${PROJECT_SOURCE_DIR}/src/base/posix)
endif()

if(SP_EMULATED)
    target_compile_definitions(sp_flags INTERFACE SP_EMULATED)
endif()
if(SP_DELAYS)
    target_compile_definitions(sp_flags INTERFACE SP_DELAYS)
endif()
if(SP_PLANTS)
    target_compile_definitions(sp_flags INTERFACE SP_PLANTS)
endif()
if(SP_SANITIZE)
    set(SP_SANITIZE_FLAGS -fsanitize=${SP_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    target_compile_options(sp_flags INTERFACE ${SP_SANITIZE_FLAGS})
    target_link_options(sp_flags INTERFACE ${SP_SANITIZE_FLAGS})
endif()
if(SP_FUZZ)
    target_compile_options(sp_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(SP_ANALYZE)
    target_compile_options(sp_flags INTERFACE
        -Werror=thread-safety -Werror=thread-safety-beta)
endif()
if(SP_COVERAGE)
    target_compile_options(sp_flags INTERFACE --coverage -fprofile-update=atomic)
    target_link_options(sp_flags INTERFACE --coverage)
endif()

# Instrumented for the scheduler: the compiler emits the __tsan_* calls; since the flag is not on the
# link line, the engine implements them instead of ThreadSanitizer.
add_library(sp_instrumented INTERFACE)
if(SP_SCHED)
    target_compile_options(sp_instrumented INTERFACE -fsanitize=thread)
endif()

add_library(sp_library_flags INTERFACE)
if(SP_SHARED_TESTS)
    target_compile_definitions(sp_flags INTERFACE SP_SHARED_TESTS)
else()
    target_compile_options(sp_library_flags INTERFACE -fvisibility=hidden)
endif()
target_link_libraries(sp_library_flags INTERFACE sp_flags sp_instrumented)
