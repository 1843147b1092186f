/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one call on two sides and compares them. */
#include "cuda/kernel_compare.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fpenv.h"
#include "ops/activation.h"
#include "ops/registry.h"
#include "support/test.h"

enum { MAX_OUTPUTS = 20, GUARD = 256 };

/* Memory with guards around it, all initialised to a pattern. */
typedef struct place {
    unsigned char *whole;
    unsigned char *data;
    uint64_t bytes;
} place;

/* The memory that one table's kernels run on. */
typedef struct side {
    place inputs[KERNEL_CASE_INPUTS], outputs[MAX_OUTPUTS], scratch[SP_LOWERING_MAX_SCRATCH];
    place packed[SP_OP_PACKED_INPUTS]; /* from input 1 on */
    sp_lowering lowering;
} side;

typedef struct both {
    kernel_compare *compare;
    const kernel_case *what;
    sp_op_call call;
    sp_op_value inputs[KERNEL_CASE_INPUTS], outputs[MAX_OUTPUTS];
    side reference, subject;
    uint64_t misalignment; /* a random number */
} both;

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The bytes before, in and after the operand that can be written. */
static uint64_t whole_bytes(uint64_t bytes)
{
    const uint64_t page = page_bytes();
    return (bytes + 2 * GUARD + page - 1) / page * page;
}

/* Every second place ends at a page without access. `unit` is the required alignment of the
 * address, `random` selects its misalignment. */
static place make_place(uint64_t bytes, uint64_t unit, uint64_t random)
{
    const uint64_t whole = whole_bytes(bytes);
    void *map = mmap(NULL, whole + page_bytes(), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect((char *)map + whole, page_bytes(), PROT_NONE) != 0) abort();
    place p = {.whole = map, .bytes = bytes};
    memset(p.whole, 0xa5, whole);
    p.data = p.whole + GUARD + random / 2 % 4 * unit % 16;
    if (random % 2 == 1) p.data = p.whole + whole - bytes;
    return p;
}

static void free_places(place *places, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (places[i].whole != NULL)
            munmap(places[i].whole, whole_bytes(places[i].bytes) + page_bytes());
        places[i] = (place){0};
    }
}

static place *place_of(side *s, const sp_operand *operand)
{
    switch (operand->kind) {
    case SP_OPERAND_INPUT:
        return &s->inputs[operand->index];
    case SP_OPERAND_OUTPUT:
        return &s->outputs[operand->index];
    case SP_OPERAND_SCRATCH:
        return &s->scratch[operand->index];
    case SP_OPERAND_PACKED:
        break;
    }
    return &s->packed[operand->index - 1];
}

static void *address_of(const sp_operand *operand, void *context)
{
    return place_of(context, operand)->data;
}

static void run_subject(both *b)
{
    const sp_lowering *lowering = &b->subject.lowering;
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        const sp_dispatch *dispatch = &lowering->dispatches[i];
        void *bindings[SP_MAX_BINDINGS];
        for (uint32_t k = 0; k < dispatch->binding_count; k++) {
            bindings[k] = address_of(&dispatch->bindings[k], &b->subject);
        }
        const sp_kernel_id id = dispatch->kernel;
        const uint8_t *field = sp__activation_field(id, (void *)(uintptr_t)dispatch->constants);
        b->compare->runs[id]++;
        if (field != NULL) b->compare->fused[id][*field]++;
        CHECK_OK(
            b->compare->run(&b->compare->kernels[id], dispatch, bindings, b->compare->context));
    }
}

/* ---- comparing ---- */

static void note_call(const both *b)
{
    test_note("%s-%u, %u attributes, activation %d, %s%s", b->what->op, b->what->version,
              b->what->attribute_count, (int)b->what->activation, b->what->packs ? "packed" : "",
              b->what->in_place ? "in place" : "");
    for (uint32_t i = 0; i < b->what->input_count; i++) {
        test_note("  input %u: %s %s", i, sp_dtype_name(b->what->inputs[i].dtype),
                  sp__shape_print(&b->what->inputs[i].shape).text);
    }
    for (uint32_t i = 0; i < b->what->attribute_count; i++) {
        const sp_attribute *a = &b->what->attributes[i];
        const int64_t *v = b->what->ints[i];
        test_note("  %s: %lld %lld %lld %lld, %g", sp__text_print(a->name).text, (long long)v[0],
                  (long long)v[1], (long long)v[2], (long long)v[3], (double)b->what->floats[i]);
    }
}

/* Compares outputs, scratch and packed matrices; also inputs, which must not change. */
static bool is_same_place(const both *b, const char *name, uint32_t index, const place *expected,
                          const place *actual)
{
    if (expected->whole == NULL) return true;
    const uint64_t bytes = whole_bytes(expected->bytes);
    if (memcmp(expected->whole, actual->whole, bytes) == 0) return true;
    uint64_t at = 0;
    while (expected->whole[at] == actual->whole[at]) at++;
    const int64_t byte = (int64_t)at - (expected->data - expected->whole);
    uint32_t want = 0, got = 0;
    memcpy(&want, expected->whole + at / 4 * 4, sizeof(want));
    memcpy(&got, actual->whole + at / 4 * 4, sizeof(got));
    note_call(b);
    test_note("  %s %u of %llu bytes differs at byte %lld: word 0x%08x instead of 0x%08x", name,
              index, (unsigned long long)expected->bytes, (long long)byte, got, want);
    return false;
}

/* Does one dispatch use the scratch, and no other? Then it is its memory, and no result. */
static bool is_of_one_dispatch(const sp_lowering *lowering, uint32_t scratch)
{
    uint32_t users = 0;
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        const sp_dispatch *dispatch = &lowering->dispatches[i];
        for (uint32_t k = 0; k < dispatch->binding_count; k++) {
            const sp_operand *operand = &dispatch->bindings[k];
            if (operand->kind != SP_OPERAND_SCRATCH || operand->index != scratch) continue;
            users++;
            break;
        }
    }
    return users == 1;
}

static bool is_same_result(const both *b)
{
    const side *r = &b->reference, *s = &b->subject;
    bool same = true;
    for (uint32_t i = 0; same && i < SP_OP_PACKED_INPUTS; i++) {
        same = is_same_place(b, "packed matrix", i, &r->packed[i], &s->packed[i]);
    }
    /* The value between an op and its separate activation has no counterpart. */
    for (uint32_t i = 0; same && i < s->lowering.scratch_count; i++) {
        if (is_of_one_dispatch(&s->lowering, i)) continue;
        same = is_same_place(b, "scratch", i, &r->scratch[i], &s->scratch[i]);
    }
    for (uint32_t i = 0; same && i < b->call.output_count; i++) {
        same = is_same_place(b, "output", i, &r->outputs[i], &s->outputs[i]);
    }
    for (uint32_t i = 0; same && i < b->call.input_count; i++) {
        same = is_same_place(b, "input", i, &r->inputs[i], &s->inputs[i]);
    }
    return same;
}

/* ---- running ---- */

static void make_side(const both *b, side *s)
{
    sp__lowering_init(&s->lowering);
    for (uint32_t i = 0; i < b->call.input_count; i++) {
        const sp_array *from = &b->what->inputs[i];
        if (from->dtype == SP_DTYPE_NONE) continue;
        s->inputs[i] =
            make_place(from->bytes, sp_dtype_bytes(from->dtype), b->misalignment >> 3 * i);
        if (from->bytes > 0) memcpy(s->inputs[i].data, from->data, (size_t)from->bytes);
    }
    for (uint32_t i = 0; i < b->call.output_count; i++) {
        s->outputs[i] = make_place(b->outputs[i].bytes, sp_dtype_bytes(b->outputs[i].dtype),
                                   b->misalignment >> (60 - 3 * i));
    }
}

static void free_side(side *s)
{
    free_places(s->inputs, KERNEL_CASE_INPUTS);
    free_places(s->outputs, MAX_OUTPUTS);
    free_places(s->scratch, SP_LOWERING_MAX_SCRATCH);
    free_places(s->packed, SP_OP_PACKED_INPUTS);
    sp__lowering_deinit(&s->lowering);
}

static void run_both(both *b)
{
    /* Packed operands of narrow products are read by 16 bytes: they begin where a plan puts them.
     */
    const uint64_t unit = b->call.precision != SP_PRECISION_DEFAULT ? 16 : 8;
    side *sides[] = {&b->reference, &b->subject};
    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < sides[i]->lowering.scratch_count; k++) {
            sides[i]->scratch[k] =
                make_place(sides[i]->lowering.scratch_bytes[k], unit, b->misalignment >> 60);
        }
    }
    const sp_kernel *portable = sp__cpu_kernels(SP_CPU_PORTABLE);
    CHECK_OK(sp__lowering_run(&b->reference.lowering, portable, address_of, &b->reference));
    run_subject(b);
}

/* Packs an input into the op's layout; both sides have it in `packed` afterwards. */
static void pack_both(both *b, uint32_t input)
{
    side *sides[] = {&b->reference, &b->subject};
    const sp_pack pack = sp__op_pack(&b->call, input);
    uint32_t scratch = 0;
    if (pack.format == SP_PACK_NONE) return;
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(sp__lower_pack(&sides[i]->lowering, &b->call, input, &pack, &scratch));
    }
    run_both(b);
    for (int i = 0; i < 2; i++) {
        sides[i]->packed[input - 1] = sides[i]->scratch[scratch];
        sides[i]->scratch[scratch] = (place){0};
        sp__lowering_reset(&sides[i]->lowering);
    }
    b->inputs[input].is_packed = true;
}

/* An op whose output aliases its input: the copy that is made if both must exist. */
static void lower_alias(const both *b, sp_lowering *lowering)
{
    const sp_flat_constants k = {.count = (int64_t)b->outputs[0].bytes};
    sp_dispatch *dispatch;
    REQUIRE_OK(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_bytes, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, &b->call, lowering->alias_input);
    sp__lower_bind_output(dispatch, &b->call, 0);
}

/* Appends a dispatch of the elementwise kernel: output 0 = kernel(operands). */
static void add_elementwise(sp_lowering *lowering, sp_kernel_id kernel, const void *constants,
                            uint32_t constant_bytes, const sp_operand *operands, uint32_t count)
{
    sp_dispatch *dispatch;
    REQUIRE_OK(sp__lower_dispatch(lowering, kernel, constants, constant_bytes, &dispatch));
    for (uint32_t i = 0; i < count; i++) dispatch->bindings[i] = operands[i];
    dispatch->binding_count = count;
}

/* Appends the activation as separate kernels over the output. */
static void lower_activation(const both *b, sp_lowering *lowering)
{
    static const sp_kernel_id kernels[SP_ACTIVATION_COUNT] = {
        [SP_ACTIVATION_RELU] = SP_KERNEL_ID_relu_f32,
        [SP_ACTIVATION_SIGMOID] = SP_KERNEL_ID_sigmoid_f32,
        [SP_ACTIVATION_TANH] = SP_KERNEL_ID_tanh_f32,
        [SP_ACTIVATION_SILU] = SP_KERNEL_ID_sigmoid_f32};
    const uint64_t bytes = b->outputs[0].bytes;
    const int64_t count = (int64_t)(bytes / sizeof(float));
    const bool is_silu = b->what->activation == SP_ACTIVATION_SILU;
    const sp_operand y = {SP_OPERAND_OUTPUT, 0, false, bytes};
    sp_operand result = y;
    if (is_silu) {
        const uint32_t index = sp__lower_scratch(lowering, bytes);
        result = (sp_operand){SP_OPERAND_SCRATCH, index, false, bytes};
    }
    const sp_flat_constants flat = {.count = count};
    if (b->what->activation == SP_ACTIVATION_HARD_SWISH) {
        const sp_gate_constants gate = {
            .count = count, .addend = 3, .low = 0, .high = 6, .divisor = 6};
        add_elementwise(lowering, SP_KERNEL_ID_clip_gate_f32, &gate, sizeof(gate),
                        (sp_operand[]){y, result}, 2);
        return;
    }
    add_elementwise(lowering, kernels[b->what->activation], &flat, sizeof(flat),
                    (sp_operand[]){y, result}, 2);
    if (!is_silu) return;
    const sp_binary_constants mul = {
        .rank = 1, .count = count, .dims = {count}, .a = {1}, .b = {1}};
    add_elementwise(lowering, SP_KERNEL_ID_mul_f32, &mul, sizeof(mul), (sp_operand[]){y, result, y},
                    3);
}

/* Fuses the activation into the call's last kernel. */
static void set_activation(const both *b, sp_lowering *lowering)
{
    sp_dispatch *last = &lowering->dispatches[lowering->dispatch_count - 1];
    uint8_t *field = sp__activation_field(last->kernel, last->constants);
    REQUIRE(field != NULL);
    *field = (uint8_t)b->what->activation;
}

static void lower_side(const both *b, side *s)
{
    REQUIRE_OK(sp__op_lower(&b->call, &s->lowering));
    if (s->lowering.alias_input != SP_NO_INPUT) lower_alias(b, &s->lowering);
    if (b->what->activation != SP_ACTIVATION_NONE && b->outputs[0].bytes > 0) {
        if (s == &b->reference) lower_activation(b, &s->lowering);
        else set_activation(b, &s->lowering);
    }
    const uint32_t input = s->lowering.in_place_input;
    if (!b->what->in_place || input == SP_NO_INPUT) return;
    /* In place. The other input could be the same memory too, but is not tested here. */
    free_places(&s->outputs[0], 1);
    s->outputs[0] = s->inputs[input];
    s->inputs[input].whole = NULL;
}

static bool infer_call(both *b)
{
    const kernel_case *what = b->what;
    const sp_op *op;
    if (sp__op_find((sp_text){0}, sp__text(what->op), what->version, &op) != SP_OK) return false;
    for (uint32_t i = 0; i < what->input_count; i++) {
        const sp_array *from = &what->inputs[i];
        b->inputs[i] = (sp_op_value){.is_present = from->dtype != SP_DTYPE_NONE,
                                     .dtype = from->dtype,
                                     .shape = from->shape,
                                     .bytes = from->bytes,
                                     .data = what->is_known[i] ? from->data : NULL};
    }
    b->call = (sp_op_call){.op = op,
                           .version = what->version,
                           .attributes = {what->attributes, what->attribute_count},
                           .inputs = b->inputs,
                           .outputs = b->outputs,
                           .input_count = what->input_count,
                           .output_count = what->output_count,
                           .precision = what->precision,
                           .packs_left = what->packs_left};
    return sp__op_check(&b->call) == SP_OK && sp__op_infer(&b->call) == SP_OK;
}

static bool is_runnable(const kernel_compare *compare, const sp_lowering *lowering)
{
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        if (!sp__kernel_is_there(&compare->kernels[lowering->dispatches[i].kernel])) return false;
    }
    return true;
}

/* Whether the call was valid. */
static bool compare_call(kernel_compare *compare, const kernel_case *what, uint64_t misalignment)
{
    both b = {.compare = compare, .what = what, .misalignment = misalignment};
    if (!infer_call(&b)) return false;
    make_side(&b, &b.reference);
    make_side(&b, &b.subject);
    for (uint32_t i = 1; i <= SP_OP_PACKED_INPUTS && i < b.call.input_count; i++) {
        if (what->packs && b.call.op->pack != NULL && b.inputs[i].is_present) pack_both(&b, i);
    }
    lower_side(&b, &b.reference);
    lower_side(&b, &b.subject);
    if (is_runnable(compare, &b.subject.lowering)) {
        run_both(&b);
        CHECK(is_same_result(&b));
    }
    free_side(&b.reference);
    free_side(&b.subject);
    return true;
}

void kernel_compare_calls(kernel_compare *compare, uint32_t kind, uint64_t seed, uint64_t most)
{
    const sp_fpenv before = sp_fpenv_enter();
    const uint64_t count = kernel_case_count(kind, most);
    uint64_t valid = 0;
    for (uint64_t i = 0; i < count; i++) {
        /* Each call has its own seed, so that it can be run alone. */
        data_random random = {seed + i * 1000003};
        kernel_case what;
        kernel_case_make(kind, &random, &what);
        if (compare->skips_narrow && what.precision != SP_PRECISION_DEFAULT) {
            kernel_case_free(&what);
            valid++;
            continue;
        }
        const uint64_t misalignment = data_next(&random) % 2 == 0 ? 0 : data_next(&random);
        valid += compare_call(compare, &what, misalignment);
        kernel_case_free(&what);
    }
    sp_fpenv_leave(before);
    CHECK(valid * 2 >= count);
}

/* ---- rows that lie anywhere ---- */

enum { ROWS_MOST = 8, ROWS_PLACES = 3 * ROWS_MOST, ROWS_GAP = 16 };

/* Rows at some of the places of a base, in any order, and the whole. */
typedef struct rows_side {
    place places, base, whole;
} rows_side;

static rows_side rows_side_make(const sp_rows_constants *k, uint64_t seed, uint64_t misalignment)
{
    data_random random = {seed};
    const uint64_t row = (uint64_t)(k->outer * k->chunk), step = row + ROWS_GAP;
    rows_side s = {make_place(ROWS_MOST * sizeof(int64_t), 8, misalignment),
                   make_place(ROWS_PLACES * step, 1, misalignment >> 3),
                   make_place((uint64_t)k->rows * row, 1, misalignment >> 6)};
    for (int64_t i = 0; i < k->rows; i++) {
        const uint64_t at = (uint64_t)(k->rows - i) * 3 - data_next(&random) % 3 - 1;
        const int64_t offset = (int64_t)(at * step);
        memcpy(s.places.data + (uint64_t)i * sizeof offset, &offset, sizeof offset);
    }
    for (uint64_t i = 0; i < s.base.bytes; i++) s.base.data[i] = (uint8_t)data_next(&random);
    for (uint64_t i = 0; i < s.whole.bytes; i++) s.whole.data[i] = (uint8_t)data_next(&random);
    return s;
}

static void rows_side_free(rows_side *s)
{
    free_places(&s->places, 1);
    free_places(&s->base, 1);
    free_places(&s->whole, 1);
}

static bool rows_are_same(const place *a, const place *b)
{
    return memcmp(a->whole, b->whole, whole_bytes(a->bytes)) == 0;
}

static void compare_rows(kernel_compare *compare, const sp_rows_constants *k, uint64_t seed,
                         uint64_t misalignment)
{
    rows_side r = rows_side_make(k, seed, misalignment), s = rows_side_make(k, seed, misalignment);
    sp_dispatch dispatch = {.kernel = SP_KERNEL_ID_move_rows,
                            .binding_count = 3,
                            .constant_bytes = sizeof *k,
                            .bindings = {{.bytes = s.places.bytes},
                                         {.bytes = s.base.bytes, .is_write = k->is_out != 0},
                                         {.bytes = s.whole.bytes, .is_write = k->is_out == 0}}};
    memcpy(dispatch.constants, k, sizeof *k);
    CHECK_OK(sp__kernel_run(&sp__cpu_kernels(SP_CPU_PORTABLE)[SP_KERNEL_ID_move_rows],
                            (void *const[]){r.places.data, r.base.data, r.whole.data}, k));
    CHECK_OK(compare->run(&compare->kernels[SP_KERNEL_ID_move_rows], &dispatch,
                          (void *const[]){s.places.data, s.base.data, s.whole.data},
                          compare->context));
    compare->runs[SP_KERNEL_ID_move_rows]++;
    CHECK(rows_are_same(&r.base, &s.base) && rows_are_same(&r.whole, &s.whole));
    rows_side_free(&r);
    rows_side_free(&s);
}

void kernel_compare_rows(kernel_compare *compare, uint64_t seed, uint64_t count)
{
    static const int64_t units[] = {1, 4, 16};
    for (uint64_t i = 0; i < count; i++) {
        data_random random = {seed + i * 1000003};
        const int64_t unit = units[data_next(&random) % 3];
        const sp_rows_constants k = {.rows = 1 + (int64_t)(data_next(&random) % ROWS_MOST),
                                     .outer = 1 + (int64_t)(data_next(&random) % 4),
                                     .chunk = unit * (1 + (int64_t)(data_next(&random) % 400)),
                                     .is_out = (int64_t)(data_next(&random) % 2)};
        compare_rows(compare, &k, data_next(&random), i % 2 == 0 ? 0 : data_next(&random));
    }
}

/* No op's lowering emits them: plans do (test_plan_blocks.c, test_plan_fuse_norm.c,
 * test_plan_fuse_gate.c and test_plan_strides.c in tests/unit/plan). */
static bool is_of_plans(int kernel)
{
    static const sp_kernel_id ids[] = {
#define KERNEL_ID(name) SP_KERNEL_ID_##name,
        SP_BLOCKED_KERNEL_LIST(KERNEL_ID) SP_FUSED_KERNEL_LIST(KERNEL_ID)
            SP_STRIDED_KERNEL_LIST(KERNEL_ID)
#undef KERNEL_ID
    };
    for (size_t i = 0; i < SP_COUNT_OF(ids); i++) {
        if ((int)ids[i] == kernel) return true;
    }
    return false;
}

static bool is_narrow(int kernel)
{
    static const sp_kernel_id packs[] = {
        SP_KERNEL_ID_narrow_pack_tf32, SP_KERNEL_ID_narrow_pack_f16, SP_KERNEL_ID_narrow_pack_bf16};
    for (size_t i = 0; i < SP_COUNT_OF(packs); i++) {
        if ((int)packs[i] == kernel) return true;
    }
    return sp__kernel_is_narrow((sp_kernel_id)kernel);
}

uint64_t kernel_compare_count(uint64_t full, uint64_t quick, uint64_t least)
{
    const uint64_t count = test_count(full, quick);
    return count < least ? least : count;
}

void kernel_compare_check_runs(const kernel_compare *compare)
{
    uint64_t by_activation[SP_ACTIVATION_COUNT] = {0};
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        if (!sp__kernel_is_there(&compare->kernels[i]) || is_of_plans(i)) continue;
        if (compare->skips_narrow && is_narrow(i)) continue;
        const char *name = compare->kernels[i].name;
        CHECK(compare->runs[i] > 0);
        if (compare->runs[i] == 0) test_note("%s never ran", name);
        _Alignas(16) unsigned char constants[SP_MAX_CONSTANT_BYTES];
        if (sp__activation_field((sp_kernel_id)i, constants) == NULL) continue;
        uint64_t fused = 0;
        for (int k = 0; k < SP_ACTIVATION_COUNT; k++) {
            by_activation[k] += compare->fused[i][k];
            if (k != SP_ACTIVATION_NONE) fused += compare->fused[i][k];
        }
        const uint64_t plain = compare->fused[i][SP_ACTIVATION_NONE];
        CHECK(fused > 0 && plain > 0);
        if (fused == 0 || plain == 0) {
            test_note("%s never ran %s an activation", name, fused == 0 ? "with" : "without");
        }
    }
    for (int k = 0; k < SP_ACTIVATION_COUNT; k++) CHECK(by_activation[k] > 0);
}
