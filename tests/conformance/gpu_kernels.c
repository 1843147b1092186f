/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the fixture for GPUs: as CUDA C++ for a real one, and as C for the driver made of
 * threads. */
#include "gpu_kernels.h"

#include <stdlib.h>

#include "device_fixture.h"
#include "fake_driver/fake_cuda.h"

static const char source[] =
    "typedef unsigned int u32; typedef unsigned long long u64;\n"
    "struct bindings { void *at[16]; };\n"
    "extern \"C\" __global__ void add_one(bindings b) { ((u32 *)b.at[0])[blockIdx.x] += 1; }\n"
    "extern \"C\" __global__ void append(bindings b, u32 value) {\n"
    "    u32 *words = (u32 *)b.at[0]; words[1 + words[0]] = value; words[0]++; }\n"
    "extern \"C\" __global__ void fail(bindings b) {}\n"
    "extern \"C\" __global__ void slow(bindings b, u64 ns) {\n"
    "    u64 start, now;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(start));\n"
    "    do { asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now)); } while (now - start < "
    "ns);\n"
    "    *(u32 *)b.at[0] += 1; }\n"
    /* The meeting: { self, arrived, wanted, met }, in memory that host and GPU see. */
    "extern \"C\" __global__ void meet(bindings b, char *meeting) {\n"
    "    volatile u32 *words = (volatile u32 *)(meeting + 8);\n"
    "    u64 start, now;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(start));\n"
    "    atomicAdd_system((u32 *)&words[0], 1);\n"
    "    while (words[0] < words[1]) {\n"
    "        asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));\n"
    "        if (now - start > 2000000000) return; }\n"
    "    atomicAdd_system((u32 *)&words[2], 1); }\n";

static const char fake_image[] = "FAKE\n"
                                 "add_one 128\n"
                                 "append 128 4\n"
                                 "fail 128\n"
                                 "meet 128 8\n"
                                 "slow 128 8\n";

/* No GPU takes a block of no threads, so this launch fails by itself. */
static void shape_that_fails(const void *constants, sp_launch_shape *out)
{
    (void)constants;
    *out = (sp_launch_shape){.grid = {1, 1, 1}};
}

/* ---- for the driver made of threads ---- */

/* The host kernel, tile by tile, with what the launch was given. */
static void run_on_host(const sp_kernel *kernel, const uint32_t grid[3], void **params)
{
    for (uint32_t i = 0; i < grid[0]; i++) {
        const sp_tile tile = {.index = {i, 0, 0},
                              .grid = {grid[0], 1, 1},
                              .bindings = params[0],
                              .constants = params[1]};
        kernel->run(&tile);
    }
}

#define FAKE_KERNEL(name)                                                                          \
    static void fake_##name(const uint32_t grid[3], const uint32_t block[3], void **params)        \
    {                                                                                              \
        (void)block;                                                                               \
        run_on_host(&kernel_##name, grid, params);                                                 \
    }
FAKE_KERNEL(add_one)
FAKE_KERNEL(append)
FAKE_KERNEL(fail)
FAKE_KERNEL(slow)
FAKE_KERNEL(meet)

/* ---- the program ---- */

static sp_gpu_program program = {.name = "conformance", .source = source};

const sp_gpu_kernel gpu_add_one = {&program, "add_one", 0, NULL};
const sp_gpu_kernel gpu_append = {&program, "append", 1, NULL};
const sp_gpu_kernel gpu_fail = {&program, "fail", 2, shape_that_fails};
const sp_gpu_kernel gpu_slow = {&program, "slow", 3, NULL};
const sp_gpu_kernel gpu_meet = {&program, "meet", 4, NULL};

static void give_to_fake_driver(void)
{
    fake_cuda_register("add_one", fake_add_one);
    fake_cuda_register("append", fake_append);
    fake_cuda_register("fail", fake_fail);
    fake_cuda_register("slow", fake_slow);
    fake_cuda_register("meet", fake_meet);
    program.binary = (const unsigned char *)fake_image;
    program.binary_bytes = sizeof fake_image;
}

bool gpu_is_fake(void)
{
    return getenv("STREAMPOOL_CUDA_DRIVER") != NULL;
}

void gpu_kernels_open(void)
{
    if (gpu_is_fake()) give_to_fake_driver();
}
