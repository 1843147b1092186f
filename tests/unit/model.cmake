# SPDX-License-Identifier: Apache-2.0
# The tests of src/tensor, src/io, src/ops, src/graph and src/plan: make test L=ops
add_library(sp_model_fixture OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/model_data.c
    ${PROJECT_SOURCE_DIR}/tests/support/onnx_writer.c)
target_link_libraries(sp_model_fixture PUBLIC sp_test_support m)
target_compile_definitions(sp_model_fixture PRIVATE
    SP_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data")

foreach(suite IN ITEMS
    tensor:layout tensor:move tensor:shape
    io:inflate io:npy io:onnx_tensor io:protobuf
    ops:activation ops:registry ops:half ops:math_f32 ops:math_f64 ops:elementwise_bits
    ops:kernel_bits ops:cuda_kernels ops:op_axis ops:op_cases ops:op_conv ops:op_elementwise
    ops:op_functions ops:op_gemm ops:op_index ops:op_kernels ops:op_list ops:op_move ops:op_norm
    ops:op_pool ops:op_products ops:op_rearrange ops:op_recurrent ops:op_reduce ops:op_resize
    ops:op_select ops:op_softmax ops:op_window ops:reduce_rows
    graph:graph graph:graph_fold graph:graph_function graph:graph_norm
    plan:arena_layout plan:deciding plan:models plan:part_needs plan:plan plan:plan_fuse
    plan:plan_key plan:segments)
    string(REPLACE ":" ";" suite ${suite})
    list(GET suite 0 label)
    list(GET suite 1 name)
    sp_add_test(test_${name} SOURCES test_${name}.c LABELS ${label} LINKS sp_model_fixture
        TIMEOUT 120)
endforeach()

# Ops by themselves, against models of one node.
add_library(sp_eager_fixture OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/eager_case.c
    ${PROJECT_SOURCE_DIR}/tests/support/eager_rows.c)
target_link_libraries(sp_eager_fixture PUBLIC sp_test_support)
foreach(suite batches hostile memory named ops types)
    sp_add_test(test_eager_${suite} SOURCES test_eager_${suite}.c LABELS ops
        LINKS sp_eager_fixture sp_model_fixture sp_runtime_fixture TIMEOUT 120)
endforeach()

# Calls that the comparison with CUDA makes too.
sp_add_test(test_move_bits SOURCES test_move_bits.c LABELS ops
    LINKS sp_kernel_compare sp_model_fixture TIMEOUT 120)

foreach(isa portable avx2)
    sp_add_test_run(test_kernel_bits_${isa} PROGRAM test_kernel_bits LABELS ops TIMEOUT 120
        ENV STREAMPOOL_ISA=${isa})
endforeach()

# A run for each function, since soak takes every float: the longest ones start first.
add_executable(test_math_accuracy test_math_accuracy.c)
target_link_libraries(test_math_accuracy PRIVATE sp_model_fixture sp_test_support sp_static m)
foreach(function elu erf exp log sigmoid softplus tanh)
    sp_add_test_run(test_math_accuracy_${function} PROGRAM test_math_accuracy LABELS ops
        ARGS ${function}_is_accurate_everywhere)
    set_tests_properties(test_math_accuracy_${function} PROPERTIES COST 100)
endforeach()
set_tests_properties(test_math_f32 PROPERTIES COST 100)
