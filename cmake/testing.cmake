# SPDX-License-Identifier: Apache-2.0
# Each test is its own program, linked with a library whose internal symbols it can call.
add_library(sp_tested INTERFACE)
if(SP_SHARED_TESTS)
    target_link_libraries(sp_tested INTERFACE sp_shared)
else()
    target_link_libraries(sp_tested INTERFACE sp_static)
    # A copy of the optimised library's debug information is 10 MB; preset dev has it for tests.
    target_link_options(sp_tested INTERFACE $<$<CONFIG:RelWithDebInfo>:-Wl,--strip-debug>)
endif()

if(CMAKE_CROSSCOMPILING)
    include(emulated)
endif()
find_program(SP_SYMBOLIZER NAMES llvm-symbolizer-19 llvm-symbolizer)
mark_as_advanced(SP_SYMBOLIZER)

set(SP_TEST_ENVIRONMENT "")
if(SP_SANITIZE OR SP_FUZZ)
    # A program goes on after a data race otherwise, and may hang in what the race has left.
    set(SP_TEST_ENVIRONMENT
        "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1"
        "UBSAN_OPTIONS=print_stacktrace=1"
        "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:history_size=4")
    if(SP_SYMBOLIZER)
        list(TRANSFORM SP_TEST_ENVIRONMENT APPEND ":external_symbolizer_path=${SP_SYMBOLIZER}")
    endif()
endif()

# sp_add_test(<name> SOURCES <files>... LABELS <labels>...
#             [LINKS <targets>...] [TIMEOUT <seconds>] [ENV <NAME=value>...] [SERIAL])
# The program <name> and one run of it. Exit code 77 is a skip.
function(sp_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "SERIAL" "TIMEOUT" "SOURCES;LABELS;LINKS;ENV")
    add_executable(${name} ${test_SOURCES})
    target_link_libraries(${name} PRIVATE ${test_LINKS} sp_test_support sp_tested)
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 60)
    endif()
    set(serial "")
    if(test_SERIAL)
        set(serial SERIAL)
    endif()
    sp_add_test_run(${name} PROGRAM ${name} LABELS ${test_LABELS} ENV ${test_ENV}
        TIMEOUT ${test_TIMEOUT} ${serial})
endfunction()

# sp_add_test_run(<run> PROGRAM <program> LABELS <labels>...
#                 [ARGS <arguments>...] [TIMEOUT <seconds>] [ENV <NAME=value>...] [SERIAL])
# Another run of a program, in another environment. SERIAL: no concurrent tests.
function(sp_add_test_run run)
    cmake_parse_arguments(PARSE_ARGV 1 test "SERIAL" "PROGRAM;TIMEOUT" "LABELS;ARGS;ENV")
    if(NOT test_TIMEOUT)
        set(test_TIMEOUT 60)
    endif()
    math(EXPR timeout "${test_TIMEOUT} * ${SP_TEST_TIMEOUT_FACTOR}")
    set(environment ${SP_TEST_ENVIRONMENT} ${test_ENV})
    add_test(NAME ${run} COMMAND ${test_PROGRAM} ${test_ARGS})
    set_tests_properties(${run} PROPERTIES
        LABELS "${test_LABELS}"
        TIMEOUT ${timeout}
        COST ${test_TIMEOUT} # the longest ones start first
        SKIP_RETURN_CODE 77
        RUN_SERIAL ${test_SERIAL}
        ENVIRONMENT "${environment}")
    if(CMAKE_CROSSCOMPILING)
        sp_select_emulated(${run} ${test_PROGRAM} ${test_LABELS})
    endif()
endfunction()

# sp_add_fuzz_target(<name> SOURCES <files>... [SECONDS <seconds>])
# The sources include fuzz.h and define LLVMFuzzerTestOneInput; preset fuzz only. The test runs it for
# 10 seconds, or as given, starting from tests/fuzz/corpus/<name> if that folder exists. The target
# sp_fuzz builds all of them.
function(sp_add_fuzz_target name)
    if(NOT SP_FUZZ)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 fuzz "" "SECONDS" "SOURCES")
    if(NOT fuzz_SECONDS)
        set(fuzz_SECONDS 10)
    endif()
    math(EXPR timeout "${fuzz_SECONDS} + 60") # for one slow input and the exit
    add_executable(${name} ${fuzz_SOURCES})
    add_dependencies(sp_fuzz ${name})
    target_link_libraries(${name} PRIVATE sp_flags sp_tested)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    # libFuzzer adds new inputs to the first folder and only reads the others.
    set(corpus ${CMAKE_CURRENT_BINARY_DIR}/${name}.corpus)
    file(MAKE_DIRECTORY ${corpus})
    if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
        list(APPEND corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
    endif()
    sp_add_test_run(${name} PROGRAM ${name} LABELS fuzz TIMEOUT ${timeout}
        ARGS -max_total_time=${fuzz_SECONDS} -timeout=5 ${corpus})
endfunction()
