# SPDX-License-Identifier: Apache-2.0
# What `make test-arm64` builds and runs in a cross-compiled build: tests get the label emulated, their
# programs are dependencies of the target sp_emulated.

# All tests of these labels, ...
set(SP_EMULATED_LABELS base device tensor io ops graph plan exec batch runtime)
# ... and these: the calls of every kernel with operands at the end of a page; whole models.
set(SP_EMULATED_TESTS
    test_kernel_cases
    test_model_api test_model_bits test_model_bits_neon test_model_bits_portable test_model_branches
    test_model_loops test_model_threads test_info)
# Not of the labels: comparisons of pages, what is repeated under the checker, and two programs that run
# without a test each of what a program reads of itself in /proc (test_file_emulated,
# test_thread_emulated).
set(SP_EMULATED_NOT "_checked$|_page$|^test_file$|^test_thread$")

add_custom_target(sp_emulated)

# sp_select_emulated(<run> <program> <labels>...): called for every run of a test.
function(sp_select_emulated run program)
    set(is_selected FALSE)
    foreach(label IN LISTS ARGN)
        if(label IN_LIST SP_EMULATED_LABELS)
            set(is_selected TRUE)
        endif()
    endforeach()
    if(run MATCHES "${SP_EMULATED_NOT}")
        set(is_selected FALSE)
    endif()
    if(run IN_LIST SP_EMULATED_TESTS)
        set(is_selected TRUE)
        set_property(TEST ${run} PROPERTY COST 1000) # the longest ones start first
    endif()
    if(is_selected AND TARGET ${program})
        set_property(TEST ${run} APPEND PROPERTY LABELS emulated)
        add_dependencies(sp_emulated ${program})
    endif()
endfunction()
