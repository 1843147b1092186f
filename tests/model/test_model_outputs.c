/* SPDX-License-Identifier: Apache-2.0 */
/* The outputs of a run: valid, invalid, left out. */
#include <string.h>
#include <sys/mman.h>

#include "run_fixture.h"
#include "support/onnx_writer.h"

TEST(wrong_outputs_are_refused_with_their_name)
{
    sp_model model = small_model(NULL);
    float out[8];
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y = output_y(out, 5);
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("output 'y' is f32 of shape [2,3] and needs 24 bytes; its capacity is 20");
    y = output_y(NULL, 6);
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_INVALID);
    y = output_y(out, 6);
    y.data = (char *)out + 2;
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_INVALID);
    y = output_y(out, 6);
    y.name = "q";
    CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_NOT_FOUND);
    sp_host_tensor two[2] = {output_y(out, 6), output_y(out, 6)};
    CHECK_STATUS(sp_model_run(model, &x, 1, two, 2), SP_MISMATCH);
    two[1].name = "y";
    CHECK_STATUS(sp_model_run(model, &x, 1, two, 2), SP_INVALID);
    CHECK_STATUS(sp_model_run(model, &x, 1, NULL, 1), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

TEST(an_output_that_overlaps_an_input_is_refused)
{
    sp_model model = small_model(NULL);
    float shared[16] = {1, 2, 3, 4, 5, 6, 7, 8};
    sp_host_tensor x = input_x(2); /* 8 floats; the output has 6 */
    x.data = shared + 2;
    for (int first = 0; first <= 10; first++) {
        sp_host_tensor y = output_y(shared + first, 6);
        const bool is_apart = first == 10;
        CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), is_apart ? SP_OK : SP_INVALID);
        if (!is_apart) CHECK_MESSAGE("output 'y' overlaps input 'x'");
    }
    CHECK_OK(sp_model_release(model));
}

TEST(outputs_that_overlap_are_refused)
{
    model_case c;
    if (!case_open("blazeface_front_128", NULL, &c)) SKIP("no shared data");
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(&c, outputs);
    CHECK_OK(case_run(&c, outputs));
    sp_array same[FIXTURE_PORTS];
    memcpy(same, outputs, sizeof same);
    /* The smaller output begins in the last 4 bytes of the larger one. */
    const uint32_t larger = outputs[0].bytes > outputs[1].bytes ? 0 : 1;
    same[1 - larger].data = (char *)outputs[larger].data + outputs[larger].bytes - 4;
    CHECK_STATUS(case_run(&c, same), SP_INVALID);
    CHECK_MESSAGE("overlaps output");
    outputs_free(&c, outputs);
    case_close(&c);
}

/* x, a, b and c are [n, 4]. */
static sp_model three_outputs(void)
{
    static const int64_t dims[2] = {-1, 4};
    static const struct {
        const char *op, *name;
    } outputs[] = {{"Relu", "a"}, {"Tanh", "b"}, {"Sigmoid", "c"}};
    writer graph = {0};
    writer part = make_value("x", 1, dims, 2);
    write_message(&graph, GRAPH_INPUT_FIELD, &part);
    for (size_t i = 0; i < SP_COUNT_OF(outputs); i++) {
        part = make_node(outputs[i].op, "x", outputs[i].name);
        write_message(&graph, GRAPH_NODE_FIELD, &part);
        part = make_value(outputs[i].name, 1, dims, 2);
        write_message(&graph, GRAPH_OUTPUT_FIELD, &part);
    }
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, NULL, &model));
    writer_free(&file);
    return model;
}

TEST(any_outputs_may_be_left_out)
{
    const sp_model model = three_outputs();
    static const char *const names[3] = {"a", "b", "c"};
    float all[3][8];
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y[3];
    for (int i = 0; i < 3; i++) y[i] = output_y(all[i], 8);
    CHECK_OK(sp_model_run(model, &x, 1, y, 3));
    for (unsigned wanted = 0; wanted < 8; wanted++) {
        float got[3][8];
        uint32_t count = 0;
        for (unsigned i = 0; i < 3; i++) {
            if ((wanted >> i & 1) == 0) continue;
            y[count] = output_y(got[i], 8);
            y[count++].name = names[i];
        }
        CHECK_OK(sp_model_run(model, &x, 1, y, count));
        for (unsigned i = 0; i < 3; i++) {
            if ((wanted >> i & 1) != 0) CHECK_EQ_MEM(got[i], all[i], sizeof got[i]);
        }
    }
    CHECK_OK(sp_model_release(model));
}

/* An output that is left out has no address. As an output at address 0 it would overlap this
 * input. */
TEST(an_output_that_is_left_out_overlaps_no_input)
{
    enum { ROWS = 1 << 18, BYTES = ROWS * 16 };
    void *const low = (void *)(uintptr_t)(BYTES / 2);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void *data = mmap(low, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (data != low) SKIP("no memory at that address");
    const sp_model model = three_outputs();
    sp_host_tensor x = input_x(ROWS);
    x.data = data;
    CHECK_OK(sp_model_run(model, &x, 1, NULL, 0));
    CHECK_OK(sp_model_release(model));
    munmap(data, BYTES);
}

TEST_MAIN
