/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: the CUDA kernels give the CPU's bits, for random calls of every op. Skipped without a
 * GPU. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cuda/kernel_compare.h"
#include "device/cuda/cuda.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "ops/cuda/cuda_kernels.h"
#include "support/model_data.h"
#include "support/test.h"

#define ROOM_BYTES ((uint64_t)256 << 20)
#define KEPT_BITS 255u /* of addresses: alignment is part of a case */

typedef struct gpu {
    sp_dev *device;
    sp_queue *queue;
    sp_memory room;   /* the operands of one dispatch, in sequence */
    sp_memory pinned; /* of the host, for what is copied from a room on the GPU, and to it */
} gpu;

static sp_status submit_and_wait(const gpu *g, const sp_command *command)
{
    const sp_submission submission = {
        .commands = command, .command_count = 1, .thread = sp__thread_record()->number};
    sp_point point;
    SP_TRY(g->device->vtable->submit(g->queue, &submission, &point));
    g->device->vtable->kick(g->queue);
    return sp__point_wait(point, SP_NO_DEADLINE);
}

static sp_status run_on_gpu(const sp_kernel *kernel, const sp_dispatch *dispatch,
                            void *const *operands, void *context)
{
    const gpu *g = context;
    sp_binding bindings[SP_MAX_BINDINGS];
    uint64_t next = 0;
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        const uint64_t bytes = dispatch->bindings[i].bytes;
        next = ((next + KEPT_BITS) & ~(uint64_t)KEPT_BITS) + ((uintptr_t)operands[i] & KEPT_BITS);
        if (next + bytes > ROOM_BYTES) return sp__fail(SP_EXHAUSTED, "the case is too large");
        bindings[i] = (sp_binding){.memory = &g->room, .offset = next, .bytes = bytes};
        if (bytes > 0) memcpy((char *)g->room.host + next, operands[i], bytes);
        next += bytes;
    }
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .kernel = kernel,
                                .bindings = bindings,
                                .binding_count = dispatch->binding_count,
                                .constants = dispatch->constants,
                                .constant_bytes = dispatch->constant_bytes};
    SP_TRY(submit_and_wait(g, &command));
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        if (!dispatch->bindings[i].is_write || bindings[i].bytes == 0) continue;
        memcpy(operands[i], (char *)g->room.host + bindings[i].offset, bindings[i].bytes);
    }
    return SP_OK;
}

TEST(kernels_on_a_gpu_have_the_bits_of_the_cpu)
{
    gpu g;
    if (sp__cuda_open(0, &g.device) != SP_OK) SKIP("no GPU");
    const sp_device_vtable *vtable = g.device->vtable;
    CHECK_OK(vtable->queue_create(g.device, 0, &(sp_queue_options){.is_batching = true}, &g.queue));
    CHECK_OK(vtable->staging_create(g.device, ROOM_BYTES, &g.room));
    kernel_compare compare = {
        .kernels = sp__cuda_kernels(), .run = run_on_gpu, .context = &g, .skips_narrow = true};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, 5000, test_count(20000, 400));
    }
    kernel_compare_rows(&compare, 6000, test_count(500, 60));
    kernel_compare_signals(&compare, 6000, test_count(500, 60));
    kernel_compare_check_runs(&compare);
    vtable->staging_destroy(&g.room);
    vtable->close(g.device);
}

/* ---- every size of a batch ---- */

#define MOST_ROWS 4096

static sp_binding binding_at(const gpu *g, uint64_t offset, uint64_t floats)
{
    return (sp_binding){
        .memory = &g->room, .offset = offset, .bytes = floats * sizeof(float), .access = SP_READ};
}

/* The bytes from `offset` on, of both memories, one from the other. */
static void room_copy(const gpu *g, const sp_memory *to, const sp_memory *from, uint64_t offset,
                      uint64_t bytes)
{
    const sp_binding bindings[2] = {
        {.memory = to, .offset = offset, .bytes = bytes, .access = SP_WRITE},
        {.memory = from, .offset = offset, .bytes = bytes, .access = SP_READ}};
    const sp_command command = {.type = SP_COMMAND_COPY, .bindings = bindings, .binding_count = 2};
    REQUIRE_OK(submit_and_wait(g, &command));
}

static const char *room_read(const gpu *g, uint64_t offset, uint64_t bytes)
{
    room_copy(g, &g->pinned, &g->room, offset, bytes);
    return (const char *)g->pinned.host + offset;
}

/* Of a kernel with four bindings. */
static void dispatch(const gpu *g, sp_kernel_id kernel, const sp_binding bindings[4],
                     const void *constants, uint32_t constant_bytes)
{
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .kernel = &sp__cuda_kernels()[kernel],
                                .bindings = bindings,
                                .binding_count = 4,
                                .constants = constants,
                                .constant_bytes = constant_bytes};
    REQUIRE_OK(submit_and_wait(g, &command));
}

/* y[rows][columns] = x[rows][depth] * w, and a bias. The room begins with all rows of x, w and the
 * bias; x begins with row `first`, y is at `y`. */
static void multiply(const gpu *g, int64_t first, int64_t rows, int64_t depth, int64_t columns,
                     uint64_t y)
{
    const uint64_t x = (uint64_t)(first * depth) * sizeof(float);
    const uint64_t w = MOST_ROWS * (uint64_t)depth * sizeof(float);
    const uint64_t bias = w + (uint64_t)(depth * columns) * sizeof(float);
    const sp_gemm_constants constants = {.rows = rows,
                                         .columns = columns,
                                         .depth = depth,
                                         .a_row = depth,
                                         .a_depth = 1,
                                         .c_column = 1,
                                         .alpha = 1,
                                         .beta = 1,
                                         .has_c = true,
                                         .b_format = SP_PACK_F32};
    const sp_binding bindings[4] = {
        binding_at(g, x, (uint64_t)(rows * depth)), binding_at(g, w, (uint64_t)(depth * columns)),
        binding_at(g, bias, (uint64_t)columns), binding_at(g, y, (uint64_t)(rows * columns))};
    dispatch(g, SP_KERNEL_ID_gemm_f32, bindings, &constants, sizeof constants);
}

/* Single rows, then every number of rows at once: the same bits. */
static void check_sizes(const gpu *g, int64_t depth, int64_t columns)
{
    const uint64_t floats = (uint64_t)(MOST_ROWS * depth + depth * columns + columns);
    data_random random = {11};
    data_fill(&random, g->pinned.host, floats);
    room_copy(g, &g->room, &g->pinned, 0, floats * sizeof(float));
    const uint64_t row_bytes = (uint64_t)columns * sizeof(float);
    const uint64_t alone = (floats * sizeof(float) + 255) / 256 * 256;
    const uint64_t together = alone + MOST_ROWS * row_bytes;
    REQUIRE(together + MOST_ROWS * row_bytes <= ROOM_BYTES);
    multiply(g, 0, MOST_ROWS, depth, columns, alone);
    const char *wanted = room_read(g, alone, MOST_ROWS * row_bytes);
    for (int64_t row = 0; row < MOST_ROWS; row += 61) {
        multiply(g, row, 1, depth, columns, together);
        const char *got = room_read(g, together, row_bytes);
        CHECK(memcmp(wanted + (uint64_t)row * row_bytes, got, row_bytes) == 0);
    }
    const int64_t step = (int64_t)(MOST_ROWS / test_count(MOST_ROWS, 512));
    for (int64_t rows = 1; rows <= MOST_ROWS; rows += step) {
        multiply(g, 0, rows, depth, columns, together);
        const char *got = room_read(g, together, (uint64_t)rows * row_bytes);
        CHECK(memcmp(wanted, got, (uint64_t)rows * row_bytes) == 0);
    }
}

/* With a room on the GPU; false: there is no GPU. */
static bool gpu_open(gpu *g)
{
    if (sp__cuda_open(0, &g->device) != SP_OK) return false;
    const sp_device_vtable *vtable = g->device->vtable;
    CHECK_OK(
        vtable->queue_create(g->device, 0, &(sp_queue_options){.is_batching = true}, &g->queue));
    CHECK_OK(vtable->memory_create(g->device, ROOM_BYTES, &g->room));
    CHECK_OK(vtable->staging_create(g->device, ROOM_BYTES, &g->pinned));
    return true;
}

static void gpu_close(gpu *g)
{
    const sp_device_vtable *vtable = g->device->vtable;
    vtable->memory_destroy(&g->room);
    vtable->staging_destroy(&g->pinned);
    vtable->close(g->device);
}

TEST(a_row_has_the_same_bits_in_batches_of_every_size)
{
    gpu g;
    if (!gpu_open(&g)) SKIP("no GPU");
    check_sizes(&g, 256, 128); /* torch_linear; and the products of torch_mlp */
    check_sizes(&g, 256, 512);
    check_sizes(&g, 512, 512);
    check_sizes(&g, 512, 128);
    check_sizes(&g, 1024, 1024); /* tiles of several blocks */
    check_sizes(&g, 2560, 720);
    gpu_close(&g);
}

/* y = x * w of 512 filters of 3 x 3 x 512 and images of 7 x 7; and a bias. From the room's start
 * on: w, bias, x. */
static void convolve(const gpu *g, int64_t images, uint64_t y)
{
    const int64_t filters = 512, pixels = 49, taps = 9;
    const sp_conv_constants constants = {.groups = 1,
                                         .channels = filters,
                                         .filters = filters,
                                         .planes = images * filters,
                                         .in_h = 7,
                                         .in_w = 7,
                                         .out_h = 7,
                                         .out_w = 7,
                                         .kernel_h = 3,
                                         .kernel_w = 3,
                                         .stride_h = 1,
                                         .stride_w = 1,
                                         .dilation_h = 1,
                                         .dilation_w = 1,
                                         .pad_top = 1,
                                         .pad_left = 1,
                                         .segment = 32 * taps,
                                         .has_bias = true};
    const uint64_t weights = (uint64_t)(filters * filters * taps);
    const uint64_t x = (weights + (uint64_t)filters) * sizeof(float);
    const uint64_t floats = (uint64_t)(images * filters * pixels);
    const sp_binding bindings[4] = {binding_at(g, x, floats), binding_at(g, 0, weights),
                                    binding_at(g, weights * sizeof(float), (uint64_t)filters),
                                    binding_at(g, y, floats)};
    dispatch(g, SP_KERNEL_ID_conv_f32, bindings, &constants, sizeof constants);
}

TEST(an_image_has_the_same_bits_in_batches_of_every_size)
{
    gpu g;
    if (!gpu_open(&g)) SKIP("no GPU");
    const int64_t most = 64;
    const uint64_t image_bytes = 512 * 49 * sizeof(float), all = ROOM_BYTES / 2;
    data_random random = {12};
    data_fill(&random, g.pinned.host, all / sizeof(float));
    room_copy(&g, &g.room, &g.pinned, 0, all);
    const uint64_t together = all + (uint64_t)most * image_bytes;
    convolve(&g, most, all);
    const char *wanted = room_read(&g, all, (uint64_t)most * image_bytes);
    for (int64_t images = 1; images <= most; images += images < 8 ? 1 : 7) {
        convolve(&g, images, together);
        const char *got = room_read(&g, together, (uint64_t)images * image_bytes);
        CHECK(memcmp(wanted, got, (uint64_t)images * image_bytes) == 0);
    }
    gpu_close(&g);
}

TEST_MAIN
