/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the fixture for GPUs: CUDA C++ for a real one, C for the fake driver. */
#include "gpu_kernels.h"

#include "base/macros.h"
#include "device_fixture.h"
#include "gpu_fixture.h"

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
    /* The meeting: { self, arrived, wanted, met }, in memory that host and GPU access. */
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

GPU_FAKE_KERNEL(add_one)
GPU_FAKE_KERNEL(append)
GPU_FAKE_KERNEL(fail)
GPU_FAKE_KERNEL(slow)
GPU_FAKE_KERNEL(meet)

static const gpu_fake_kernel fake_kernels[] = {{"add_one", fake_add_one},
                                               {"append", fake_append},
                                               {"fail", fake_fail},
                                               {"slow", fake_slow},
                                               {"meet", fake_meet}};

static sp_gpu_program program = {
    .name = "conformance", .source = source, .kernel_count = SP_COUNT_OF(fake_kernels)};

const sp_gpu_kernel gpu_add_one = {.program = &program, .entry = "add_one", .index = 0};
const sp_gpu_kernel gpu_append = {.program = &program, .entry = "append", .index = 1};
const sp_gpu_kernel gpu_fail = {
    .program = &program, .entry = "fail", .index = 2, .shape = gpu_shape_that_fails};
const sp_gpu_kernel gpu_slow = {.program = &program, .entry = "slow", .index = 3};
const sp_gpu_kernel gpu_meet = {.program = &program, .entry = "meet", .index = 4};

void gpu_kernels_open(void)
{
    gpu_program_begin(&program, fake_image, fake_kernels, SP_COUNT_OF(fake_kernels));
}
