# SPDX-License-Identifier: Apache-2.0
# The tests of src/tensor, src/io, src/ops, src/graph, src/plan and src/exec: make test L=ops
add_library(sp_model_fixture OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/conv_cases.c
    ${PROJECT_SOURCE_DIR}/tests/support/fused_graph.c
    ${PROJECT_SOURCE_DIR}/tests/support/fused_plans.c
    ${PROJECT_SOURCE_DIR}/tests/support/graph_draw.c
    ${PROJECT_SOURCE_DIR}/tests/support/image_graph.c
    ${PROJECT_SOURCE_DIR}/tests/support/model_data.c
    ${PROJECT_SOURCE_DIR}/tests/support/onnx_writer.c
    ${PROJECT_SOURCE_DIR}/tests/support/random_weight.c)
target_link_libraries(sp_model_fixture PUBLIC sp_test_support m)
target_compile_definitions(sp_model_fixture PRIVATE
    SP_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data")

foreach(suite IN ITEMS
    tensor:layout tensor:move tensor:shape
    io:npy io:onnx_tensor io:protobuf io:tensor_proto_file
    ops:activation ops:registry ops:op_info ops:op_kernels ops:op_list ops:pack ops:unpack
    ops/schema:op_axis ops/schema:op_cases ops/schema:op_conv ops/schema:op_corners
    ops/schema:op_conv_volumes ops/schema:op_einsum ops/schema:op_elementwise
    ops/schema:op_functions ops/schema:op_gemm ops/schema:op_grid_sample ops/schema:op_index ops/schema:op_move
    ops/schema:op_norm ops/schema:op_pool ops/schema:op_products ops/schema:op_rearrange
    ops/schema:op_recurrent ops/schema:op_reduce ops/schema:op_resize ops/schema:op_select
    ops/schema:op_softmax ops/schema:op_window
    ops/cpu:cpu_isa ops/cpu:half ops/cpu:math_f32 ops/cpu:math_f64 ops/cpu:near_f32 ops/cpu:elementwise_bits
    ops/cpu:kernel_bits ops/cpu:reduce_rows ops/cpu:gemm_strided ops/cpu:gemm_narrow ops/cpu:tiling
    ops/cpu:conv_tiles ops/cpu:copy_strided ops/cpu:conv_pool
    graph:graph graph:graph_fold graph:graph_function graph:graph_norm graph:graph_pad
    graph:graph_pages
    plan:arena_layout plan:shape_inputs plan:models plan:subgraph_needs plan:plan plan:plan_fuse
    plan:plan_fuse_addend plan:plan_fuse_packed plan:plan_fuse_packed_rows plan:plan_fuse_halves plan:plan_fuse_norm plan:plan_fuse_gate plan:plan_fuse_look_up plan:plan_fuse_moments
    plan:plan_fuse_attention plan:plan_fuse_masks plan:fused_graphs
    plan:plan_key plan:segments plan:plan_blocks
    plan:plan_join plan:plan_mean plan:plan_slices plan:plan_strides plan:plan_view
    exec:port_overlap exec:tensor_overlap exec:run_estimate exec:run_slots exec:run_yield exec:wait_queue
    batch:batch_judge batch:batch_ports batch:batch_time)
    string(REPLACE ":" ";" suite ${suite})
    list(GET suite 0 folder)
    string(REGEX MATCH "^[a-z]+" label ${folder})
    list(GET suite 1 name)
    sp_add_test(test_${name} SOURCES ${folder}/test_${name}.c LABELS ${label}
        LINKS sp_model_fixture TIMEOUT 120)
endforeach()

sp_add_test(test_conv_direct SOURCES ops/cuda/test_conv_direct.c LABELS ops)

# It compiles all programs of CUDA kernels, if there is a compiler.
sp_add_test(test_cuda_kernels SOURCES ops/cuda/test_cuda_kernels.c LABELS ops
    LINKS sp_model_fixture TIMEOUT 300)

foreach(name packed_weights weight_store)
    sp_add_test(test_${name} SOURCES exec/test_${name}.c LABELS exec
        LINKS sp_model_fixture sp_runtime_fixture TIMEOUT 120)
endforeach()

# Row-separability.
add_library(sp_rows_fixture OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/rows_case.c
    ${PROJECT_SOURCE_DIR}/tests/support/rows_model.c)
target_link_libraries(sp_rows_fixture PUBLIC sp_test_support)
foreach(suite IN ITEMS ops:rows_random plan:plan_rows plan:plan_rows_search
    plan:rows_graphs)
    string(REPLACE ":" ";" suite ${suite})
    list(GET suite 0 label)
    list(GET suite 1 name)
    sp_add_test(test_${name} SOURCES ${label}/test_${name}.c LABELS ${label}
        LINKS sp_rows_fixture sp_model_fixture TIMEOUT 120)
endforeach()

# Eager ops compared with models of one node.
add_library(sp_eager_fixture OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/eager_case.c
    ${PROJECT_SOURCE_DIR}/tests/support/eager_rows.c)
target_link_libraries(sp_eager_fixture PUBLIC sp_test_support)
foreach(suite batches hostile memory named ops types)
    sp_add_test(test_eager_${suite} SOURCES ops/test_eager_${suite}.c LABELS ops
        LINKS sp_eager_fixture sp_model_fixture sp_runtime_fixture TIMEOUT 120)
endforeach()

# The calls of the comparison with CUDA.
sp_add_test(test_move_bits SOURCES ops/cpu/test_move_bits.c LABELS ops
    LINKS sp_kernel_compare sp_model_fixture TIMEOUT 120)

foreach(isa portable avx2 avx512 neon)
    sp_add_test_run(test_kernel_bits_${isa} PROGRAM test_kernel_bits LABELS ops TIMEOUT 120
        ENV STREAMPOOL_ISA=${isa})
endforeach()

# One run per function, since soak tests every float: the longest ones start first.
add_executable(test_math_accuracy ops/cpu/test_math_accuracy.c)
target_link_libraries(test_math_accuracy PRIVATE sp_model_fixture sp_test_support sp_tested m)
foreach(function acos acosh asin asinh atan atanh cos cosh elu erf exp log sigmoid sin sinh softplus tan tanh)
    sp_add_test_run(test_math_accuracy_${function} PROGRAM test_math_accuracy LABELS ops
        ARGS ${function}_is_accurate_everywhere)
    set_tests_properties(test_math_accuracy_${function} PROPERTIES COST 100)
endforeach()
set_tests_properties(test_math_f32 PROPERTIES COST 100)

# A part of the program, which is not a library.
sp_add_test(test_latencies SOURCES cli/test_latencies.c ${PROJECT_SOURCE_DIR}/cli/latencies.c
    LABELS cli LINKS sp_model_fixture)
target_include_directories(test_latencies PRIVATE ${PROJECT_SOURCE_DIR}/cli)
