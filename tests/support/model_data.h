/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of tensor, ops and model: files of shared data, seeded numbers, and single calls of an
 * op or a plan on host arrays. Not thread-safe. */
#ifndef SP_TESTS_SUPPORT_MODEL_DATA_H
#define SP_TESTS_SUPPORT_MODEL_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "ops/op.h"
#include "plan/plan.h"
#include "tensor/array.h"

/* The path of a file below shared/data: from STREAMPOOL_TEST_DATA, or ../shared/data beside the
 * source. False if it does not exist. */
#define DATA_PATH_BYTES 1024
bool data_path(char out[DATA_PATH_BYTES], const char *format, ...) SP_PRINTF(2, 3);

/* The bytes of a file, to be freed; NULL if it cannot be read. */
unsigned char *data_read(const char *path, size_t *len);

/* A seeded sequence; the same on every machine. */
typedef struct data_random {
    uint64_t state;
} data_random;

uint64_t data_next(data_random *random);
/* In [-1, 1), with 24 random bits. */
float data_next_float(data_random *random);
void data_fill(data_random *random, float *out, size_t count);

/* Bitwise equality: -0 differs from +0, and a NaN equals itself. */
bool data_is_same(float a, float b);

/* FNV-1a hash of bytes, for golden values. */
uint64_t data_hash(const void *bytes, size_t len);

/* An array of random floats, or of the integers given. */
sp_array data_floats(data_random *random, const sp_shape *shape);
sp_array data_ints(const int64_t *values, int64_t count);

#define SHAPE(...)                                                                                 \
    ((sp_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})
#define INTS(...)                                                                                  \
    data_ints((int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

void data_free(sp_array *arrays, uint32_t count);

/* Elements of any type whose bits are start, start + 1, ...; and the bits of one element. */
sp_array data_counted(sp_dtype dtype, sp_shape shape, uint64_t start);
uint64_t data_element(const sp_array *array, uint64_t index);

/* One op, run on host arrays with the kernels of `isa`: infers, packs, lowers, runs. Absent inputs
 * are arrays with no dtype. On success the caller frees the outputs. `packs` uses the op's packing
 * of inputs, as models do. */
typedef struct data_call {
    const char *op;
    uint32_t version;
    const sp_attribute *attributes;
    uint32_t attribute_count;
    const sp_array *inputs;
    uint32_t input_count;
    uint32_t output_count;
    sp_cpu_isa isa;
    bool packs;
    sp_activation activation; /* fused into the op's last kernel, which must support it */
} data_call;

/* An operand of a call: absent if the array has no type. `is_known` gives its values to shape
 * rules.
 */
sp_op_value data_operand(const sp_array *from, bool is_known);
sp_status data_run_op(const data_call *call, sp_array *outputs);

/* The same with the selected instruction set, unpacked. */
sp_status data_run(const char *op, uint32_t version, const sp_attribute *attributes,
                   uint32_t attribute_count, const sp_array *inputs, uint32_t input_count,
                   sp_array *outputs, uint32_t output_count);

/* The instruction set that STREAMPOOL_ISA names; SP_CPU_ISA_COUNT if it names none, or one that
 * this processor does not have. */
sp_cpu_isa data_asked_isa(void);

/* An attribute of one or more integers or floats, or of text; `values` is borrowed. */
sp_attribute data_attribute_ints(const char *name, const int64_t *values, uint32_t count);
sp_attribute data_attribute_int(const char *name, const int64_t *value);
sp_attribute data_attribute_float(const char *name, const float *value);
sp_attribute data_attribute_text(const char *name, const sp_text *value);

/* Runs a plan on host arrays, with its own arena, initialised to 0xff bytes (NaNs); the caller
 * frees the outputs. */
sp_status data_run_plan(const sp_graph_plan *plan, const sp_array *inputs, sp_array *outputs);

/* |got - want| <= tolerance + relative * |want| for f32, NaN equals NaN; other types exactly.
 * Updates *worst with the largest difference. */
bool data_is_close(const sp_array *got, const sp_array *want, double tolerance, double relative,
                   double *worst);

#endif
