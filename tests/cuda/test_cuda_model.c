/* SPDX-License-Identifier: Apache-2.0 */
/* Models on a CUDA device, on the fake driver: what has no CUDA kernel is refused by name. */
#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/runtime.h>

#include "support/onnx_writer.h"
#include "support/test.h"

static writer erf_model(void)
{
    const int64_t dims[] = {4};
    writer graph = {0};
    writer x = make_value("x", 1, dims, 1), y = make_value("y", 1, dims, 1);
    writer node = make_node("Erf", "x", "y");
    write_message(&graph, GRAPH_INPUT_FIELD, &x);
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &y);
    return make_model(&graph, 13);
}

TEST(an_op_without_a_cuda_kernel_is_refused_with_its_name)
{
    sp_device device;
    REQUIRE_OK(sp_device_open("cuda:0", &device));
    writer file = erf_model();
    const sp_model_options options = {.device = device};
    sp_model model;
    REQUIRE_OK(sp_model_load_from_memory(file.bytes, file.len, &options, &model));
    float data[4] = {0}, result[4] = {0};
    const sp_host_tensor x = {
        .data = data, .bytes = sizeof(data), .dtype = SP_F32, .rank = 1, .shape = {4}};
    sp_host_tensor y = x;
    y.data = result;
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("(Erf)");
    CHECK_MESSAGE("kernel erf_f32 does not run on a device of kind cuda");
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(device));
    writer_free(&file);
}

TEST_MAIN
