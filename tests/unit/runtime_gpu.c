/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_gpu.h"

#include "base/macros.h"
#include "gpu_fixture.h"
#include "runtime_fixture.h"

static const char source[] =
    "typedef unsigned long long u64;\n"
    "struct bindings { unsigned char *at[16]; };\n"
    "struct constants { u64 ns, bytes, value; void *inside, *met; unsigned wanted; };\n"
    "__device__ void dawdle(u64 ns)\n"
    "{\n"
    "    u64 start, now;\n"
    "    asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(start));\n"
    "    do asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now)); while (now - start < ns);\n"
    "}\n"
    "__device__ void fill(volatile unsigned char *at, u64 from, u64 to, u64 value)\n"
    "{\n"
    "    for (u64 i = from; i < to; i++) at[i] = (unsigned char)value;\n"
    "}\n"
    "extern \"C\" __global__ void fail(bindings b, constants c) {}\n"
    "extern \"C\" __global__ void meet(bindings b, constants c) {}\n"
    "extern \"C\" __global__ void slow_fill(bindings b, constants c)\n"
    "{ dawdle(c.ns); fill(b.at[0], 0, c.bytes, c.value); }\n"
    "extern \"C\" __global__ void quiet_fill(bindings b, constants c)\n"
    "{ fill(b.at[0], 0, c.bytes, c.value); }\n"
    "extern \"C\" __global__ void slow_copy(bindings b, constants c)\n"
    "{ dawdle(c.ns); for (u64 i = 0; i < c.bytes; i++) b.at[0][i] = b.at[1][i]; }\n"
    "extern \"C\" __global__ void two_halves(bindings b, constants c)\n"
    "{\n"
    "    fill(b.at[0], 0, c.bytes / 2, c.value);\n"
    "    dawdle(2000);\n"
    "    fill(b.at[0], c.bytes / 2, c.bytes, c.value);\n"
    "}\n";

/* Bindings, then kernel_constants. */
static const char fake_image[] = "FAKE\n"
                                 "fail 128\n"
                                 "meet 128 48\n"
                                 "slow_fill 128 48\n"
                                 "quiet_fill 128 48\n"
                                 "slow_copy 128 48\n"
                                 "two_halves 128 48\n";
_Static_assert(sizeof(kernel_constants) == 48, "as the image says");

GPU_FAKE_KERNEL(fail)
GPU_FAKE_KERNEL(meet)
GPU_FAKE_KERNEL(slow_fill)
GPU_FAKE_KERNEL(quiet_fill)
GPU_FAKE_KERNEL(slow_copy)
GPU_FAKE_KERNEL(two_halves)

static const gpu_fake_kernel fake_kernels[] = {
    {"fail", fake_fail},           {"meet", fake_meet},
    {"slow_fill", fake_slow_fill}, {"quiet_fill", fake_quiet_fill},
    {"slow_copy", fake_slow_copy}, {"two_halves", fake_two_halves}};

static sp_gpu_program program = {.name = "runtime-tests", .source = source};

const sp_gpu_kernel runtime_gpu_fail = {&program, "fail", 0, gpu_shape_that_fails};
const sp_gpu_kernel runtime_gpu_meet = {&program, "meet", 1, NULL};
const sp_gpu_kernel runtime_gpu_slow_fill = {&program, "slow_fill", 2, NULL};
const sp_gpu_kernel runtime_gpu_quiet_fill = {&program, "quiet_fill", 3, NULL};
const sp_gpu_kernel runtime_gpu_slow_copy = {&program, "slow_copy", 4, NULL};
const sp_gpu_kernel runtime_gpu_two_halves = {&program, "two_halves", 5, NULL};

void runtime_gpu_begin(void)
{
    gpu_program_begin(&program, fake_image, fake_kernels, SP_COUNT_OF(fake_kernels));
}
