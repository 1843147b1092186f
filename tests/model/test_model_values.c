/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose inputs are sizes or indices: the values belong to the plan, or are checked by the
 * run, and errors name the node. */
#include <string.h>

#include "run_fixture.h"
#include "support/onnx_writer.h"

static sp_model load(const char *op, const char *inputs)
{
    writer graph = {0};
    writer x = make_value("x", 1, NULL, -1), i = make_value("i", 7, NULL, -1);
    writer y = make_value("y", 0, NULL, -1), node = make_node(op, inputs, "y");
    write_message(&graph, GRAPH_INPUT_FIELD, &x);
    write_message(&graph, GRAPH_INPUT_FIELD, &i);
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &y);
    writer bytes = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(bytes.bytes, bytes.len, NULL, &model));
    writer_free(&bytes);
    return model;
}

static sp_host_tensor tensor(void *data, sp_dtype dtype, uint32_t rank, int64_t a, int64_t b)
{
    return (sp_host_tensor){.data = data,
                            .bytes = (uint64_t)(a * (rank > 1 ? b : 1)) * sp_dtype_bytes(dtype),
                            .dtype = dtype,
                            .rank = rank,
                            .shape = {a, b}};
}

TEST(a_shape_given_as_an_input_may_change_from_run_to_run)
{
    static const int64_t shapes[][2] = {{2, 3}, {3, 2}, {6, 1}, {2, 3}};
    sp_model model = load("Reshape", "x i");
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    for (int i = 0; i < 4; i++) {
        int64_t shape[2] = {shapes[i][0], shapes[i][1]};
        const sp_host_tensor in[] = {tensor(x, SP_F32, 2, 1, 6), tensor(shape, SP_I64, 1, 2, 0)};
        sp_host_tensor out = tensor(y, SP_F32, 2, 1, 6);
        memset(y, 0, sizeof(y));
        CHECK_OK(sp_model_infer(model, in, 2, &out, 1));
        CHECK_EQ_INT(out.shape[0], shape[0]);
        CHECK_OK(sp_model_run(model, in, 2, &out, 1));
        CHECK_EQ_INT(out.shape[1], shape[1]);
        CHECK_EQ_MEM(y, x, sizeof(x));
    }
    int64_t shape[2] = {4, 2};
    sp_host_tensor in[] = {tensor(x, SP_F32, 2, 1, 6), tensor(shape, SP_I64, 1, 2, 0)};
    sp_host_tensor out = tensor(y, SP_F32, 2, 1, 6);
    CHECK_STATUS(sp_model_run(model, in, 2, &out, 1), SP_MISMATCH);
    CHECK_MESSAGE("node 'y' (Reshape): shape [1,6] cannot become [4,2]");
    in[1].data = NULL;
    CHECK_STATUS(sp_model_infer(model, in, 2, &out, 1), SP_INVALID);
    CHECK_MESSAGE("input 'i' has no data");
    CHECK_OK(sp_model_release(model));
}

TEST(a_list_that_is_too_long_to_be_a_key_is_refused_by_the_op)
{
    sp_model model = load("Reshape", "x i");
    static int64_t shape[100];
    float x[1] = {0}, y[1];
    const sp_host_tensor in[] = {tensor(x, SP_F32, 2, 1, 1), tensor(shape, SP_I64, 1, 100, 0)};
    sp_host_tensor out = tensor(y, SP_F32, 2, 1, 1);
    CHECK_STATUS(sp_model_run(model, in, 2, &out, 1), SP_MISMATCH);
    CHECK_MESSAGE("wanted a list of at most 8");
    CHECK_OK(sp_model_release(model));
}

TEST(an_index_out_of_range_fails_the_run_and_names_the_node)
{
    sp_model model = load("Gather", "x i");
    float x[6] = {1, 2, 3, 4, 5, 6}, y[3];
    int64_t index = 2;
    const sp_host_tensor in[] = {tensor(x, SP_F32, 2, 2, 3), tensor(&index, SP_I64, 1, 1, 0)};
    sp_host_tensor out = tensor(y, SP_F32, 2, 1, 3);
    CHECK_STATUS(sp_model_run(model, in, 2, &out, 1), SP_INVALID);
    CHECK_MESSAGE("'y' (Gather)");
    CHECK_MESSAGE("index 2 is out of range for a dimension of 2");
    index = -1; /* the session is none the worse for it */
    CHECK_OK(sp_model_run(model, in, 2, &out, 1));
    CHECK_EQ_MEM(y, x + 3, sizeof(y));
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
