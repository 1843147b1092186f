# SPDX-License-Identifier: Apache-2.0
# The tests that need a whole runtime: `make test L=runtime`
add_library(sp_runtime_fixture OBJECT fixture/eager_calls.c fixture/runtime_calls.c
    fixture/runtime_fixture.c fixture/runtime_gpu.c fixture/tensor_calls.c
    fixture/thread_list.c)
target_link_libraries(sp_runtime_fixture PUBLIC sp_test_support sp_gpu_fixture)
target_include_directories(sp_runtime_fixture PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/fixture)

# Each program once as is, once under the checker, which must report nothing, and, in builds with
# delays, once with delays at every marked place.
foreach(suite IN ITEMS
    device:wait_graph
    runtime:adopt runtime:adopt_ready runtime:allocator runtime:block_pool runtime:call_order
    runtime:callback_process runtime:command_list runtime:device_copy runtime:current_stream runtime:device_log runtime:event
    runtime:event_time
    runtime:frontier runtime:run_queue runtime:host_access runtime:host_exit runtime:host_memory
    runtime:host_streams runtime:mirror runtime:mirror_memory runtime:null_faults runtime:runtime_state
    runtime:runtime_state_faults runtime:runtime_state_memory runtime:runtime_state_process
    runtime:own_memory runtime:storage runtime:stream runtime:stream_faults runtime:stream_host
    runtime:stream_line runtime:stream_pool runtime:submit runtime:submit_queue runtime:submit_ranges
    runtime:unused_memory runtime:wait_check
    tensor:dlpack tensor:tensor
    io:npz
    ops:tensor_copy ops:eager)
    string(REPLACE ":" ";" suite ${suite})
    list(GET suite 0 folder)
    list(GET suite 1 name)
    set(program test_${name})
    sp_add_test(${program} SOURCES ${folder}/${program}.c LABELS runtime LINKS sp_runtime_fixture
        TIMEOUT 120)
    # Not if two streams use different ranges of a storage: the checker tracks whole storages.
    if(NOT name STREQUAL "submit_ranges")
        sp_add_test_run(${program}_checked PROGRAM ${program} LABELS runtime checked TIMEOUT 120
            ENV STREAMPOOL_CHECK=1 STREAMPOOL_TEST_SCALE=0.1)
    endif()
    if(SP_DELAYS)
        sp_add_test_run(${program}_delayed PROGRAM ${program} LABELS runtime TIMEOUT 240
            ENV STREAMPOOL_TEST_DELAYS=20 STREAMPOOL_TEST_SCALE=0.1)
    endif()
endforeach()
target_link_libraries(test_eager PRIVATE m) # rounding
target_link_libraries(test_device_copy PRIVATE sp_own_memory)
target_link_libraries(test_tensor_copy PRIVATE sp_own_memory)
target_link_libraries(test_mirror PRIVATE sp_own_memory)
target_link_libraries(test_mirror_memory PRIVATE sp_own_memory)
target_link_libraries(test_own_memory PRIVATE sp_own_memory)
target_link_libraries(test_wait_check PRIVATE sp_own_memory)
