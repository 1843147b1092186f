/* SPDX-License-Identifier: Apache-2.0 */
/* Models through the public API: valid calls, and every kind of invalid call. */
#include <streampool/command_list.h>
#include <streampool/event.h>
#include <streampool/runtime.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "run_fixture.h"
#include "support/onnx_writer.h"

TEST(a_model_tells_its_inputs_and_outputs)
{
    sp_model model = small_model(NULL);
    sp_model_info info;
    sp_port port;
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.input_count, 1); /* b has an initializer */
    CHECK_EQ_U64(info.output_count, 1);
    CHECK_EQ_U64(info.opset, 13);
    CHECK_OK(sp_model_get_input(model, 0, &port));
    CHECK_EQ_STR(port.name, "x");
    CHECK_EQ_INT(port.dtype, SP_F32);
    CHECK_EQ_U64(port.rank, 2);
    CHECK_EQ_INT(port.shape[0], -1);
    CHECK_EQ_STR(port.dim_names[0], "n");
    CHECK_EQ_INT(port.shape[1], 4);
    CHECK_STATUS(sp_model_get_input(model, 1, &port), SP_NOT_FOUND);
    CHECK_STATUS(sp_model_get_output(model, 1, &port), SP_NOT_FOUND);
    CHECK_OK(sp_model_get_output(model, 0, &port));
    CHECK_EQ_STR(port.name, "y");
    uint32_t index = 9;
    CHECK_OK(sp_model_find_output(model, "y", &index));
    CHECK_EQ_U64(index, 0);
    CHECK_STATUS(sp_model_find_input(model, "z", &index), SP_NOT_FOUND);
    CHECK_MESSAGE("it has: x");
    CHECK_OK(sp_model_release(model));
}

TEST(a_model_without_inputs_says_so)
{
    static const float w[1] = {1};
    writer graph = {0};
    writer weight = make_tensor("w", 1, NULL, 0, w, sizeof w);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &weight);
    add_node(&graph, make_node("Tanh", "w", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model;
    uint32_t index;
    REQUIRE_OK(sp_model_load_from_memory(file.bytes, file.len, NULL, &model));
    writer_free(&file);
    CHECK_STATUS(sp_model_find_input(model, "x", &index), SP_NOT_FOUND);
    CHECK_MESSAGE("no input 'x'; it has none");
    const sp_host_tensor x = {.name = "x"};
    CHECK_STATUS(sp_model_run(model, &x, 1, NULL, 0), SP_NOT_FOUND);
    CHECK_MESSAGE("no input 'x'; it has none");
    CHECK_OK(sp_model_release(model));
}

TEST(a_port_says_whether_the_file_gives_its_shape)
{
    static const int64_t dims[1] = {3};
    writer graph = {0};
    add_input(&graph, "scalar", 1, NULL, 0);
    add_input(&graph, "any", 1, dims, -1);
    add_node(&graph, make_node("Add", "scalar any", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model;
    sp_port port;
    REQUIRE_OK(sp_model_load_from_memory(file.bytes, file.len, NULL, &model));
    writer_free(&file);
    CHECK_OK(sp_model_get_input(model, 0, &port));
    CHECK(port.has_shape);
    CHECK_EQ_U64(port.rank, 0);
    CHECK_OK(sp_model_get_input(model, 1, &port));
    CHECK(!port.has_shape);
    CHECK_EQ_U64(port.rank, 0);
    CHECK_OK(sp_model_release(model));
}

TEST(tensors_are_given_by_place_or_by_name)
{
    sp_model model = small_model(NULL);
    float by_place[6];
    float by_name[6];
    sp_host_tensor x = input_x(2);
    sp_host_tensor y = output_y(by_place, 6);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    CHECK_EQ_U64(y.rank, 2);
    CHECK_EQ_INT(y.shape[0], 2);
    CHECK_EQ_INT(y.shape[1], 3);
    CHECK_EQ_INT(y.dtype, SP_F32);
    CHECK_EQ_U64(y.bytes, 24);
    x.name = "x";
    y = output_y(by_name, 6);
    y.name = "y";
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    CHECK_EQ_MEM(by_place, by_name, sizeof by_place);
    CHECK_OK(sp_model_run(model, &x, 1, NULL, 0)); /* no output requested */
    CHECK_OK(sp_model_release(model));
}

TEST(an_initializer_that_is_an_input_can_be_overridden_by_name)
{
    sp_model model = small_model(NULL);
    float plain[3];
    float other[3];
    float again[3];
    float bias[3] = {-0.5f, 0.5f, -1.0f};
    sp_host_tensor inputs[2] = {input_x(1),
                                {.name = "b",
                                 .data = bias,
                                 .bytes = sizeof bias,
                                 .dtype = SP_F32,
                                 .rank = 1,
                                 .shape = {3}}};
    sp_host_tensor y = output_y(plain, 3);
    CHECK_OK(sp_model_run(model, inputs, 1, &y, 1));
    y = output_y(other, 3);
    CHECK_OK(sp_model_run(model, inputs, 2, &y, 1));
    CHECK_EQ_MEM(plain, other, sizeof plain);
    bias[1] = 0.25f;
    CHECK_OK(sp_model_run(model, inputs, 2, &y, 1));
    CHECK(plain[1] != other[1]);
    y = output_y(again, 3);
    CHECK_OK(sp_model_run(model, inputs, 1, &y, 1));
    CHECK_EQ_MEM(plain, again, sizeof plain);
    CHECK_OK(sp_model_release(model));
}

TEST(infer_tells_shapes_without_running)
{
    sp_model model = small_model(NULL);
    sp_host_tensor x = input_x(5);
    sp_host_tensor y = {0};
    x.data = NULL;
    CHECK_OK(sp_model_infer(model, &x, 1, &y, 1));
    CHECK_EQ_INT(y.shape[0], 5);
    CHECK_EQ_U64(y.bytes, 60);
    sp_model_info info;
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.runs, 0);
    CHECK_OK(sp_model_release(model));
}

typedef struct wrong_input {
    sp_host_tensor tensor;
    sp_status status;
    const char *message;
} wrong_input;

TEST(wrong_inputs_are_refused_with_their_name)
{
    sp_model model = small_model(NULL);
    float out[6];
    const sp_host_tensor good = input_x(2);
    wrong_input wrong[] = {
        {good, SP_MISMATCH, "input 'x' has 32 bytes"},
        {good, SP_MISMATCH, "has no dtype"},
        {good, SP_INVALID, "has no data"},
        {good, SP_INVALID, "not aligned"},
        {good, SP_NOT_FOUND, "no input 'q'"},
        {good, SP_MISMATCH, "x"},  /* rank */
        {good, SP_MISMATCH, "x"},  /* dimension */
        {good, SP_MISMATCH, "x"},  /* dtype */
        {good, SP_MISMATCH, "x"},  /* negative */
        {good, SP_EXHAUSTED, "x"}, /* absurd */
    };
    wrong[0].tensor.shape[0] = 3;
    wrong[1].tensor.dtype = SP_DTYPE_NONE;
    wrong[2].tensor.data = NULL;
    wrong[3].tensor.data = (char *)good.data + 1;
    wrong[4].tensor.name = "q";
    wrong[5].tensor.rank = 1;
    wrong[5].tensor.shape[0] = 8;
    wrong[6].tensor.shape[0] = 4;
    wrong[6].tensor.shape[1] = 2;
    wrong[7].tensor.dtype = SP_I32;
    wrong[8].tensor.shape[0] = -2;
    wrong[9].tensor.shape[0] = INT64_MAX / 8;
    for (size_t i = 0; i < SP_COUNT_OF(wrong); i++) {
        sp_host_tensor y = output_y(out, 6);
        CHECK_STATUS(sp_model_run(model, &wrong[i].tensor, 1, &y, 1), wrong[i].status);
        CHECK_MESSAGE(wrong[i].message);
    }
    sp_host_tensor y = output_y(out, 6);
    sp_host_tensor twice[2] = {good, good};
    twice[1].name = "x";
    CHECK_STATUS(sp_model_run(model, twice, 2, &y, 1), SP_INVALID);
    CHECK_MESSAGE("twice");
    twice[1].name = NULL;
    CHECK_STATUS(sp_model_run(model, twice, 2, &y, 1), SP_MISMATCH);
    CHECK_STATUS(sp_model_run(model, NULL, 0, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("input 'x' is missing");
    CHECK_STATUS(sp_model_run(model, NULL, 1, &y, 1), SP_INVALID);
    CHECK_OK(sp_model_run(model, &good, 1, &y, 1)); /* nothing changed */
    CHECK_OK(sp_model_release(model));
}

TEST(handles_that_do_not_work_are_refused)
{
    sp_model model = small_model(NULL);
    sp_model_info info;
    sp_port port;
    uint32_t index;
    CHECK_OK(sp_model_retain(model));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_model_release(model), SP_INVALID);
    CHECK_STATUS(sp_model_retain(model), SP_INVALID);
    CHECK_STATUS(sp_model_get_info(model, &info), SP_INVALID);
    CHECK_STATUS(sp_model_get_input(model, 0, &port), SP_INVALID);
    CHECK_STATUS(sp_model_find_input(model, "x", &index), SP_INVALID);
    CHECK_STATUS(sp_model_run(model, NULL, 0, NULL, 0), SP_INVALID);
    CHECK_STATUS(sp_model_infer((sp_model){0}, NULL, 0, NULL, 0), SP_INVALID);
    CHECK_STATUS(sp_model_run((sp_model){~(uint64_t)0}, NULL, 0, NULL, 0), SP_INVALID);
    CHECK_OK(sp_model_release((sp_model){0}));
    CHECK_STATUS(sp_model_load("x", NULL, NULL), SP_INVALID);
    CHECK_STATUS(sp_model_get_info(model, NULL), SP_INVALID);
}

/* Every call that takes a model, with these bits: each fails with `message`. */
static void expect_model_invalid(uint64_t bits, const char *message)
{
    const sp_model model = {bits};
    for (uint32_t i = 0; i < model_call_count; i++) {
        const sp_status status = model_calls[i].run(model);
        CHECK_STATUS(status, SP_INVALID);
        CHECK_MESSAGE(message);
        if (status != SP_INVALID) test_note("%s of %#llx", model_calls[i].name, (long long)bits);
    }
    if (bits == 0) return; /* the release of the zero handle succeeds */
    CHECK_STATUS(sp_model_release(model), SP_INVALID);
    CHECK_MESSAGE(message);
}

TEST(every_call_is_right_on_a_live_model)
{
    const sp_model model = small_model(NULL);
    for (uint32_t i = 0; i < model_call_count; i++) CHECK_OK(model_calls[i].run(model));
    CHECK_OK(sp_model_release(model));
}

TEST(zero_forged_and_stale_models_are_invalid_in_every_call)
{
    const sp_model live = small_model(NULL); /* so that a slot exists */
    const sp_model stale = small_model(NULL);
    CHECK_OK(sp_model_release(stale));
    expect_model_invalid(0, "the zero handle");
    expect_model_invalid(~(uint64_t)0, "no model handle");
    expect_model_invalid(stale.bits, "stale");
    expect_model_invalid(live.bits + ((uint64_t)1 << 28), "stale"); /* a future generation */
    expect_model_invalid(live.bits | 0xfffffff, "stale");           /* a slot that never existed */
    data_random random = {43};
    const uint64_t kind = live.bits >> 56;
    for (int i = 0; i < 2000; i++) {
        const uint64_t bits = data_next(&random);
        expect_model_invalid(bits, bits >> 56 == kind ? "stale" : "no model handle");
    }
    CHECK_OK(sp_model_release((sp_model){0}));
    CHECK_OK(sp_model_release(live));
}

typedef struct other_handles {
    sp_stream stream;
    sp_event event;
    sp_storage storage;
    sp_command_list list;
    sp_device device;
} other_handles;

static other_handles other_handles_make(void)
{
    other_handles h = {0};
    CHECK_OK(sp_device_at(0, &h.device));
    CHECK_OK(sp_stream_from_pool(h.device, &h.stream));
    CHECK_OK(sp_event_create(NULL, &h.event));
    CHECK_OK(sp_storage_create(h.device, 64, NULL, &h.storage));
    CHECK_OK(sp_command_list_create(h.device, &h.list));
    return h;
}

static void other_handles_release(const other_handles *h)
{
    CHECK_OK(sp_stream_release(h->stream));
    CHECK_OK(sp_event_release(h->event));
    CHECK_OK(sp_storage_release(h->storage));
    CHECK_OK(sp_command_list_release(h->list));
}

TEST(live_handles_of_other_kinds_are_no_models)
{
    const sp_model model = small_model(NULL);
    const other_handles h = other_handles_make();
    const uint64_t bits[] = {h.stream.bits, h.event.bits, h.storage.bits, h.list.bits,
                             h.device.bits};
    for (size_t i = 0; i < SP_COUNT_OF(bits); i++) expect_model_invalid(bits[i], "no model handle");
    CHECK_OK(sp_stream_query(h.stream)); /* nothing was released by it */
    CHECK_OK(sp_storage_retain(h.storage));
    CHECK_OK(sp_storage_release(h.storage));
    other_handles_release(&h);
    CHECK_OK(sp_model_release(model));
}

TEST(a_live_model_is_no_handle_of_another_kind)
{
    const sp_model model = small_model(NULL);
    const uint64_t bits = model.bits;
    CHECK_STATUS(sp_stream_synchronize((sp_stream){bits}), SP_INVALID);
    CHECK_MESSAGE("no stream handle");
    CHECK_STATUS(sp_stream_release((sp_stream){bits}), SP_INVALID);
    CHECK_MESSAGE("no stream handle");
    CHECK_STATUS(sp_event_query((sp_event){bits}), SP_INVALID);
    CHECK_MESSAGE("no event handle");
    CHECK_STATUS(sp_event_release((sp_event){bits}), SP_INVALID);
    CHECK_MESSAGE("no event handle");
    void *data;
    CHECK_STATUS(sp_storage_host_begin((sp_storage){bits}, SP_READ, &data), SP_INVALID);
    CHECK_MESSAGE("no storage handle");
    CHECK_STATUS(sp_storage_release((sp_storage){bits}), SP_INVALID);
    CHECK_MESSAGE("no storage handle");
    CHECK_STATUS(sp_command_list_release((sp_command_list){bits}), SP_INVALID);
    CHECK_MESSAGE("no command list handle");
    CHECK_STATUS(sp_device_synchronize((sp_device){bits}), SP_INVALID);
    CHECK_MESSAGE("is not a device");
    for (uint32_t i = 0; i < model_call_count; i++) CHECK_OK(model_calls[i].run(model));
    CHECK_OK(sp_model_release(model));
}

/* ---- devices of models ---- */

/* The device is checked before the bytes. */
static void expect_load_refused(uint64_t device, sp_status status, const char *message)
{
    const sp_model_options options = {.device = {device}};
    sp_model model = {1};
    CHECK_STATUS(sp_model_load_from_memory("no model", 8, &options, &model), status);
    CHECK_MESSAGE(message);
    CHECK_EQ_U64(model.bits, 0);
}

TEST(a_model_is_loaded_for_an_open_device_only)
{
    const other_handles h = other_handles_make();
    const sp_model other = small_model(NULL);
    sp_device null;
    CHECK_OK(sp_device_open("null", &null));
    const uint64_t forged[] = {1,
                               ~(uint64_t)0,
                               null.bits + 1, /* not opened yet */
                               h.stream.bits,
                               h.event.bits,
                               h.storage.bits,
                               h.list.bits,
                               other.bits};
    for (size_t i = 0; i < SP_COUNT_OF(forged); i++) {
        expect_load_refused(forged[i], SP_INVALID, "is not a device");
    }
    data_random random = {44};
    for (int i = 0; i < 2000; i++) {
        expect_load_refused(data_next(&random), SP_INVALID, "is not a device");
    }
    const sp_model_options on_null = {.device = null};
    const sp_model model = small_model(&on_null);
    sp_model_info info;
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.device.bits, null.bits);
    CHECK_OK(sp_device_close(null));
    expect_load_refused(null.bits, SP_CLOSED, "was closed");
    CHECK_OK(sp_model_get_info(model, &info)); /* queries and the release still work */
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_model_release(other));
    other_handles_release(&h);
}

TEST(files_that_are_no_models_are_refused)
{
    sp_model model;
    CHECK_STATUS(sp_model_load("/nowhere/model.onnx", NULL, &model), SP_IO);
    CHECK_MESSAGE("/nowhere/model.onnx");
    CHECK_EQ_U64(model.bits, 0);
    CHECK_STATUS(sp_model_load("/", NULL, &model), SP_IO);
    CHECK_STATUS(sp_model_load(NULL, NULL, &model), SP_INVALID);
    CHECK_STATUS(sp_model_load_from_memory(NULL, 5, NULL, &model), SP_INVALID);
    CHECK_STATUS(sp_model_load_from_memory("hello, model", 12, NULL, &model), SP_CORRUPT);
    CHECK_STATUS(sp_model_load_from_memory("", 0, NULL, &model), SP_CORRUPT);
}

TEST(a_length_that_no_file_has_is_refused_unread)
{
    sp_model model = {1};
    /* Reading a byte from this address would crash. */
    const void *nowhere = (const void *)(uintptr_t)64;
    CHECK_STATUS(sp_model_load_from_memory(nowhere, SIZE_MAX, NULL, &model), SP_INVALID);
    CHECK_MESSAGE("18446744073709551615 bytes");
    CHECK_EQ_U64(model.bits, 0);
    CHECK_STATUS(sp_model_load_from_memory(nowhere, (size_t)PTRDIFF_MAX + 1, NULL, &model),
                 SP_INVALID);
    CHECK_STATUS(sp_model_load_from_memory(nowhere, 0, NULL, &model), SP_CORRUPT);
    CHECK_STATUS(sp_model_load_from_memory(NULL, 0, NULL, &model), SP_INVALID);
}

TEST(absurd_sizes_of_tensors_are_refused_or_harmless)
{
    const sp_model model = small_model(NULL);
    float out[6] = {0};
    float expected[6];
    const sp_host_tensor good = input_x(2);
    sp_host_tensor y = output_y(expected, 6);
    CHECK_OK(sp_model_run(model, &good, 1, &y, 1));
    static const uint64_t wrong[] = {0, 31, 33, UINT64_MAX};
    for (size_t i = 0; i < SP_COUNT_OF(wrong); i++) {
        sp_host_tensor x = good;
        x.bytes = wrong[i];
        y = output_y(out, 6);
        CHECK_STATUS(sp_model_run(model, &x, 1, &y, 1), SP_MISMATCH);
        CHECK_MESSAGE("input 'x' has ");
    }
    y = output_y(out, 0);
    CHECK_STATUS(sp_model_run(model, &good, 1, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("its capacity is 0");
    y = output_y(out, 6);
    y.capacity = UINT64_MAX; /* enough room; only the output is written */
    CHECK_OK(sp_model_run(model, &good, 1, &y, 1));
    CHECK_EQ_U64(y.bytes, 24);
    CHECK_EQ_MEM(out, expected, sizeof out);
    CHECK_OK(sp_model_release(model));
}

static void check_empty(const sp_host_tensor *y)
{
    CHECK_EQ_U64(y->bytes, 0);
    CHECK_EQ_U64(y->rank, 2);
    CHECK_EQ_INT(y->shape[0], 0);
    CHECK_EQ_INT(y->shape[1], 3);
    CHECK_EQ_INT(y->dtype, SP_F32);
}

TEST(no_rows_in_give_no_rows_out)
{
    const sp_model model = small_model(NULL);
    sp_host_tensor x = input_x(0);
    float untouched = 7;
    sp_host_tensor y = output_y(&untouched, 1);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    check_empty(&y);
    CHECK(untouched == 7.0f);
    x.data = NULL; /* no elements, so no address, on either side */
    y = output_y(NULL, 0);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    check_empty(&y);
    CHECK_OK(sp_model_run(model, &x, 1, NULL, 0));
    const sp_host_tensor one = input_x(1);
    float out[3];
    y = output_y(out, 3);
    CHECK_OK(sp_model_run(model, &one, 1, &y, 1));
    CHECK_EQ_INT(y.shape[0], 1);
    CHECK_OK(sp_model_release(model));
}

TEST(a_real_model_takes_no_rows_too)
{
    model_case c;
    if (!case_open("torch_mlp", NULL, &c)) SKIP("no shared data");
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {0, 256}};
    sp_host_tensor y = {0};
    CHECK_OK(sp_model_run(c.model, &x, 1, &y, 1));
    CHECK_EQ_U64(y.bytes, 0);
    CHECK_EQ_INT(y.shape[1], 128);
    outputs_wipe(&c, c.outputs);
    CHECK_OK(case_run(&c, c.outputs)); /* and rows after an empty batch */
    case_close(&c);
}

typedef struct inside {
    sp_model model;
    sp_status status;
    float out[6];
} inside;

static void run_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    (void)status;
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y = output_y(in->out, 6);
    in->status = sp_model_run(in->model, &x, 1, &y, 1);
    const sp_host_tensor nothing = {.dtype = SP_F32, .rank = 2, .shape = {0, 4}};
    CHECK_OK(sp_model_run(in->model, &nothing, 1, NULL, 0));
}

TEST(a_run_inside_a_host_function_waits_for_no_stream)
{
    inside in = {.model = small_model(NULL), .status = SP_INTERNAL};
    float alone[6];
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y = output_y(alone, 6);
    CHECK_OK(sp_model_run(in.model, &x, 1, &y, 1));
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, &in));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_STATUS(in.status, SP_OK);
    CHECK_EQ_MEM(in.out, alone, sizeof alone);
    CHECK_OK(sp_model_release(in.model));
}

TEST_MAIN
