/* SPDX-License-Identifier: Apache-2.0 */
/* Golden hashes of the elementwise kernels: their results on random bits, on every instruction set
 * and with every compiler. A changed hash breaks a guarantee to users. */
#include <string.h>

#include "base/fpenv.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

enum { COUNT = 3000, BYTES = 8 * COUNT };

/* The arguments of a kernel. */
typedef enum family { BINARY, SELECT, UNARY, FUNCTION, CAST } family;

static const struct {
    sp_kernel_id id;
    family family;
} kernels[] = {
#define ROW(name) {SP_KERNEL_ID_##name, BINARY},
    SP_BINARY_LIST(ROW) SP_COMPARISON_LIST(ROW)
#undef ROW
#define ROW(name) {SP_KERNEL_ID_##name, SELECT},
        SP_SELECT_LIST(ROW)
#undef ROW
#define ROW(name) {SP_KERNEL_ID_##name, UNARY},
            SP_UNARY_LIST(ROW)
#undef ROW
#define ROW(name) {SP_KERNEL_ID_##name, FUNCTION},
                SP_FUNCTION_LIST(ROW) SP_PREDICATE_LIST(ROW)
#undef ROW
#define ROW(name) {SP_KERNEL_ID_##name, CAST},
                    SP_CAST_LIST(ROW)
#undef ROW
};

static const struct {
    const char *name;
    uint64_t hash;
} golden[] = {
#define GOLDEN(name, hash) {#name, hash},
#include "elementwise_golden.inc"
#undef GOLDEN
};

typedef struct operands {
    _Alignas(64) unsigned char in[3][BYTES], out[BYTES];
} operands;

static operands memory;

/* Random bits, so every class of number; half of the floats near 1, some elements small
 * integers. */
static void fill_inputs(void)
{
    data_random random = {7};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < COUNT; i++) {
            uint64_t bits = data_next(&random);
            const float pair[2] = {data_next_float(&random) * 8, data_next_float(&random) * 8};
            const double one = (double)data_next_float(&random) * 8;
            if (bits % 4 == 1) memcpy(&bits, pair, sizeof(bits));
            if (bits % 4 == 2) memcpy(&bits, &one, sizeof(bits));
            if (bits % 8 == 3) bits = bits >> 60;
            memcpy(memory.in[k] + 8 * i, &bits, sizeof(bits));
        }
    }
}

static void run(const sp_kernel *kernel, void **bindings, const void *constants)
{
    CHECK_OK(sp__kernel_run(kernel, bindings, constants));
}

static uint64_t hash_of(const sp_kernel *kernel, family which)
{
    void *bindings[4] = {memory.in[0], memory.in[1], memory.out, NULL};
    memset(memory.out, 0xff, BYTES);
    uint64_t hash = 0;
    if (which == BINARY) {
        const sp_binary_constants k = {
            .rank = 1, .count = COUNT, .dims = {COUNT}, .a = {1}, .b = {1}};
        run(kernel, bindings, &k);
        return data_hash(memory.out, BYTES);
    }
    if (which == SELECT) {
        const sp_select_constants k = {
            .rank = 1, .count = COUNT, .dims = {COUNT}, .condition = {1}, .x = {1}, .y = {1}};
        bindings[2] = memory.in[2];
        bindings[3] = memory.out;
        run(kernel, bindings, &k);
        return data_hash(memory.out, BYTES);
    }
    bindings[1] = memory.out;
    if (which != CAST) { /* kernels without parameters read the first two constants only */
        const sp_function_constants k = {.count = COUNT, .alpha = 0.75, .beta = 1.25};
        run(kernel, bindings, &k);
        return data_hash(memory.out, BYTES);
    }
    for (uint32_t to = SP_F32; to <= SP_BOOL; to++) {
        const sp_cast_constants k = {.count = COUNT, .to = to};
        run(kernel, bindings, &k);
        hash = hash * 0x100000001b3u ^ data_hash(memory.out, BYTES);
    }
    return hash;
}

TEST(every_elementwise_kernel_has_its_golden_bits_on_every_isa)
{
    const sp_fpenv before = sp_fpenv_enter();
    fill_inputs();
    CHECK_EQ_U64(SP_COUNT_OF(golden), SP_COUNT_OF(kernels));
    for (size_t i = 0; i < SP_COUNT_OF(kernels); i++) {
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
            const sp_kernel *kernel = &sp__cpu_kernels((sp_cpu_isa)isa)[kernels[i].id];
            const uint64_t hash = hash_of(kernel, kernels[i].family);
            const bool is_there = i < SP_COUNT_OF(golden);
            if (is_there && strcmp(golden[i].name, kernel->name) == 0 && golden[i].hash == hash) {
                continue;
            }
            test_note("GOLDEN(%s, 0x%016llx) on %s", kernel->name, (unsigned long long)hash,
                      sp__cpu_isa_name((sp_cpu_isa)isa));
            CHECK(false);
        }
    }
    sp_fpenv_leave(before);
}

TEST_MAIN
