/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: a row has the same bits alone and in a batch of every size, whatever the scale of the
 * tests. Each size is a plan of its own, with one context per run slot: so the test runs with few
 * streams and a small plan cache. Skipped without a GPU. */
#include <streampool/device.h>

#include <string.h>

#include "base/heap.h"
#include "run_fixture.h"

static void run_batch(const model_case *c, int64_t rows, const float *inputs, float *out)
{
    const sp_array *x = &c->inputs[0];
    const sp_array *y = &c->outputs[0];
    sp_host_tensor input = tensor_of(x, NULL);
    sp_host_tensor output = tensor_of(y, NULL);
    const uint64_t in = input.bytes / (uint64_t)input.shape[0];
    const uint64_t each = output.bytes / (uint64_t)output.shape[0];
    input.shape[0] = rows;
    input.bytes = in * (uint64_t)rows;
    input.data = (void *)(uintptr_t)inputs;
    output.capacity = each * (uint64_t)rows;
    output.data = out;
    CHECK_OK(sp_model_run(c->model, &input, 1, &output, 1));
}

static void check_batches(const char *name, sp_device device)
{
    enum { MOST = 4096 };
    const sp_model_options options = {.device = device};
    model_case c;
    if (!case_open(name, &options, &c)) SKIP("no shared data");
    const sp_array *x = &c.inputs[0];
    const sp_array *y = &c.outputs[0];
    const uint64_t in = x->bytes / (uint64_t)x->shape.dims[0] / sizeof(float);
    const uint64_t each = y->bytes / (uint64_t)y->shape.dims[0] / sizeof(float);
    float *inputs = sp_malloc(MOST * in * sizeof(float));
    float *alone = sp_malloc(MOST * each * sizeof(float));
    float *out = sp_malloc(MOST * each * sizeof(float));
    data_random random = {7};
    data_fill(&random, inputs, MOST * in);
    for (uint64_t row = 0; row < MOST; row++) {
        run_batch(&c, 1, inputs + row * in, alone + row * each);
    }
    for (int64_t rows = 1; rows <= MOST; rows++) {
        run_batch(&c, rows, inputs, out);
        CHECK(memcmp(out, alone, (uint64_t)rows * each * sizeof(float)) == 0);
    }
    sp_free(inputs);
    sp_free(alone);
    sp_free(out);
    case_close(&c);
}

TEST(a_row_of_every_batch_of_1_to_4096_has_the_bits_of_the_row_alone)
{
    sp_device device;
    if (sp_device_open("cuda:0", &device) != SP_OK) SKIP("no GPU");
    check_batches("torch_mlp", device);
    check_batches("torch_linear", device);
}

TEST_MAIN
