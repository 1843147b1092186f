/* SPDX-License-Identifier: Apache-2.0 */
/* A faulting kernel makes its GPU lost: waits report the kernel's name, later calls fail at once,
 * and cpu is unaffected. On a real GPU, or on the fake driver. */
#include "base/clock.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda.h"
#include "device/gpu_kernel.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "gpu_fixture.h"
#include "support/test.h"

static const char source[] = "extern \"C\" __global__ void write_nowhere(void)\n"
                             "{\n"
                             "    *(volatile int *)64 = 1;\n"
                             "}\n";
static const char fake_image[] = "FAKE\nwrite_nowhere\n";

static sp_gpu_program program = {.name = "fault", .source = source, .kernel_count = 1};
static const sp_gpu_kernel gpu_kernel = {.program = &program, .entry = "write_nowhere", .index = 0};
static const sp_kernel kernel = {.name = "write_nowhere", .gpu = &gpu_kernel};

static void fake_write_nowhere(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block, (void)params;
    fake_cuda_raise(CUDA_ERROR_ILLEGAL_ADDRESS);
}

static const gpu_fake_kernel fake_kernel = {"write_nowhere", fake_write_nowhere};

static sp_status submit(sp_queue *queue, const sp_command *command, sp_point *out)
{
    const sp_device_vtable *vtable = queue->device->vtable;
    const sp_submission submission = {
        .commands = command, .command_count = 1, .thread = sp__thread_record()->number};
    SP_TRY(vtable->submit(queue, &submission, out));
    if (vtable->kick != NULL) vtable->kick(queue);
    return SP_OK;
}

TEST(a_kernel_that_faults_loses_the_gpu_and_nothing_else)
{
    gpu_program_begin(&program, fake_image, &fake_kernel, 1);
    sp_dev *gpu;
    sp_dev *cpu;
    sp_queue *queues[3];
    if (sp__cuda_open(0, &gpu) != SP_OK) SKIP("no GPU");
    CHECK_OK(sp__cpu_open(&(sp_cpu_options){0}, &cpu));
    const sp_queue_options options = {.is_batching = true};
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(gpu->vtable->queue_create(gpu, i, &options, &queues[i]));
    }
    CHECK_OK(cpu->vtable->queue_create(cpu, 0, &options, &queues[2]));

    const sp_command bad = {.type = SP_COMMAND_DISPATCH, .kernel = &kernel, .grid = {1, 1, 1}};
    sp_point point;
    CHECK_OK(submit(queues[0], &bad, &point));
    CHECK_STATUS(sp__point_wait(point, SP_NO_DEADLINE), SP_DEVICE_LOST);
    CHECK_MESSAGE("write_nowhere");
    CHECK_MESSAGE("CUDA_ERROR_ILLEGAL_ADDRESS");

    uint32_t word = 0;
    const uint32_t seven = 7;
    const sp_memory memory = sp__memory_at_host(cpu, &word, sizeof word);
    const sp_binding binding = {.memory = &memory, .bytes = sizeof word, .access = SP_WRITE};
    const sp_command fill = {.type = SP_COMMAND_FILL,
                             .bindings = &binding,
                             .binding_count = 1,
                             .constants = &seven,
                             .constant_bytes = sizeof seven};
    CHECK_STATUS(submit(queues[1], &fill, &point), SP_DEVICE_LOST);
    CHECK_OK(submit(queues[2], &fill, &point));
    CHECK_OK(sp__point_wait(point, SP_NO_DEADLINE));
    CHECK_EQ_U64(word, 7);
    gpu->vtable->close(gpu);
    cpu->vtable->close(cpu);
}

TEST_MAIN
