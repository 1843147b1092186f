/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/kernel_case_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

/* ---- random numbers ---- */

int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

bool one_in(data_random *random, int64_t n)
{
    return pick(random, 1, n) == 1;
}

int64_t pick_size(data_random *random, int64_t most)
{
    if (one_in(random, 40)) return 0;
    if (one_in(random, 6)) return 1;
    return pick(random, 1, one_in(random, 3) ? most : (most + 3) / 4);
}

sp_shape pick_shape(data_random *random, uint32_t least_rank, uint32_t most_rank, int64_t most)
{
    sp_shape shape = {.rank = (uint32_t)pick(random, least_rank, most_rank)};
    int64_t room = 20000;
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = pick_size(random, most < room ? most : room);
        if (shape.dims[i] > 1) room = room / shape.dims[i] + 1;
    }
    return shape;
}

/* A float of a class that uniform random numbers rarely hit. */
static uint32_t special_float(data_random *random)
{
    static const uint32_t bits[] = {
        0x00000000, 0x80000000, 0x3f800000, 0xbf800000,             /* 0, 1 */
        0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, /* infinities, NaNs */
        0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x80800001, /* smallest, subnormal */
        0x7f7fffff, 0xff7fffff, 0x1f800000, 0x9f800000, 0x5f800000, /* over- and underflow */
        0x42b17218, 0xc2cff1b5, 0xc2aeac50, 0x3f200000, 0x3effffff, /* edges of exp and tanh */
    };
    const uint64_t choice = data_next(random);
    if (choice % 4 != 0) return bits[choice / 4 % SP_COUNT_OF(bits)];
    return (uint32_t)(choice >> 32);
}

static void fill_floats(data_random *random, float *out, uint64_t count)
{
    /* A few special numbers among others, so that most results are finite; sometimes many. */
    const int64_t rarity = one_in(random, 4) ? (one_in(random, 3) ? 2 : 300) : 0;
    const float scale = one_in(random, 4) ? 20.0f : 1.0f;
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t special = special_float(random);
        out[i] = data_next_float(random) * scale;
        if (rarity > 0 && one_in(random, rarity)) memcpy(&out[i], &special, sizeof(special));
    }
}

void fill_random(data_random *random, sp_array *array)
{
    const uint64_t count = sp__shape_count(&array->shape);
    if (array->dtype == SP_F32) {
        fill_floats(random, array->data, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = data_next(random);
        /* Numbers of all magnitudes, including 0, -1 and the minimum. */
        int64_t value = (int64_t)bits >> data_next(random) % 64;
        if (bits % 16 == 0) value = INT64_MIN;
        if (bits % 16 == 1) value = INT32_MIN;
        if (bits % 16 == 2) value = 0;
        if (array->dtype == SP_BOOL) value &= 1;
        if (array->dtype == SP_F16 || array->dtype == SP_F64 || array->dtype == SP_BF16) {
            value = (int64_t)bits; /* every kind of float */
        }
        const size_t bytes = sp_dtype_bytes(array->dtype);
        memcpy((char *)array->data + i * bytes, &value, bytes);
    }
}

/* ---- parts of a call ---- */

sp_array *add_random(kernel_case *c, data_random *random, sp_dtype dtype, const sp_shape *shape)
{
    sp_array *array = &c->inputs[c->input_count++];
    if (sp__array_init(array, dtype, shape) != SP_OK) abort();
    fill_random(random, array);
    return array;
}

sp_array *add_array(kernel_case *c, sp_dtype dtype, sp_shape shape)
{
    sp_array *array = &c->inputs[c->input_count++];
    if (sp__array_init(array, dtype, &shape) != SP_OK) abort();
    return array;
}

void add_floats(kernel_case *c, data_random *random, sp_shape shape)
{
    sp_array *array = add_array(c, SP_F32, shape);
    data_fill(random, array->data, (size_t)(array->bytes / sizeof(float)));
}

void add_known_ints(kernel_case *c, const int64_t *values, int64_t count)
{
    c->is_known[c->input_count] = true;
    c->inputs[c->input_count++] = data_ints(values, count);
}

void add_ints(kernel_case *c, const char *name, const int64_t *values, uint32_t count)
{
    int64_t *kept = c->ints[c->attribute_count];
    memcpy(kept, values, count * sizeof(*values));
    c->attributes[c->attribute_count++] = data_attribute_ints(name, kept, count);
}

void add_int(kernel_case *c, const char *name, int64_t value)
{
    c->ints[c->attribute_count][0] = value;
    c->attributes[c->attribute_count] = data_attribute_int(name, c->ints[c->attribute_count]);
    c->attribute_count++;
}

void add_float(kernel_case *c, const char *name, float value)
{
    c->floats[c->attribute_count] = value;
    c->attributes[c->attribute_count] = data_attribute_float(name, &c->floats[c->attribute_count]);
    c->attribute_count++;
}

void add_text(kernel_case *c, const char *name, sp_text *place, const char *value)
{
    *place = sp__text(value);
    c->attributes[c->attribute_count++] = data_attribute_text(name, place);
}

void set_op(kernel_case *c, const char *op, uint32_t version)
{
    c->op = op;
    c->version = version;
}

sp_activation pick_activation(data_random *random)
{
    if (one_in(random, 4)) return SP_ACTIVATION_NONE;
    return (sp_activation)pick(random, 0, SP_ACTIVATION_COUNT - 1);
}

sp_dtype pick_dtype(data_random *random)
{
    static const sp_dtype all[] = {SP_F32, SP_F32, SP_F32, SP_I64, SP_I32,
                                   SP_U8,  SP_I16, SP_F64, SP_F16, SP_BOOL};
    return all[pick(random, 0, SP_COUNT_OF(all) - 1)];
}

sp_shape pick_operand(data_random *random, const sp_shape *shape)
{
    const uint32_t skip = one_in(random, 3) ? (uint32_t)pick(random, 0, shape->rank) : 0;
    sp_shape operand = {.rank = shape->rank - skip};
    const bool is_same = one_in(random, 2);
    for (uint32_t i = 0; i < operand.rank; i++) {
        operand.dims[i] = !is_same && one_in(random, 2) ? 1 : shape->dims[skip + i];
    }
    return operand;
}
