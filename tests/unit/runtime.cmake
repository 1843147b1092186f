# SPDX-License-Identifier: Apache-2.0
# The tests of src/runtime: make test L=runtime
add_library(sp_runtime_fixture OBJECT eager_calls.c runtime_calls.c runtime_fixture.c
    runtime_gpu.c tensor_calls.c)
target_link_libraries(sp_runtime_fixture PUBLIC sp_test_support sp_gpu_fixture)
target_include_directories(sp_runtime_fixture PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})

# Each program once as it is, once under the checker, which must report nothing, and, in builds that
# can, once with delays at every marked place.
foreach(suite
    adopt adopt_ready allocator block_pool call_order command_list current_stream event event_time
    frontier host_access host_exit host_memory host_streams null_faults runtime_state
    runtime_state_faults runtime_state_memory runtime_state_process storage stream stream_faults
    stream_host stream_line stream_pool submit submit_ranges dlpack npz tensor tensor_copy eager
    wait_graph)
    set(program test_${suite})
    sp_add_test(${program} SOURCES ${program}.c LABELS runtime LINKS sp_runtime_fixture TIMEOUT 120)
    # Not where two streams use different ranges of a storage: the checker looks at whole ones.
    if(NOT suite STREQUAL "submit_ranges")
        sp_add_test_run(${program}_checked PROGRAM ${program} LABELS runtime checked TIMEOUT 120
            ENV STREAMPOOL_CHECK=1 STREAMPOOL_TEST_SCALE=0.1)
    endif()
    if(SP_DELAYS)
        sp_add_test_run(${program}_delayed PROGRAM ${program} LABELS runtime TIMEOUT 240
            ENV STREAMPOOL_TEST_DELAYS=20 STREAMPOOL_TEST_SCALE=0.1)
    endif()
endforeach()
target_link_libraries(test_eager PRIVATE m) # rounding
