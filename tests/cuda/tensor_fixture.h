/* SPDX-License-Identifier: Apache-2.0 */
/* Models on tensors of the segment fixture's device. */
#ifndef SP_TESTS_TENSOR_FIXTURE_H
#define SP_TESTS_TENSOR_FIXTURE_H

#include <streampool/model_tensors.h>

#include "segment_fixture.h"

/* A tensor with the array's elements. */
sp_tensor tensor_from(sp_device device, const sp_array *array);
/* Whether the tensor has the array's dtype, shape and bits. */
bool tensor_is(sp_tensor tensor, const sp_array *array);

/* The inputs of a case as tensors, and its outputs, which calls create. */
typedef struct tensor_case {
    const model_case *c;
    sp_model_tensor inputs[FIXTURE_PORTS], outputs[FIXTURE_PORTS];
} tensor_case;

tensor_case tensor_case_make(const model_case *c, sp_device device);
void tensor_case_free(tensor_case *t);
/* A run on a stream, or on the current one; the outputs are new. */
sp_status tensor_case_run(tensor_case *t, sp_stream stream);
/* Whether the outputs have the bits of the cpu; releases them. */
bool tensor_case_take(tensor_case *t);

/* The x of small_model, with the same values for every row number; and its result. */
sp_tensor tensor_of_rows(sp_device device, uint64_t first, uint64_t rows);
/* One run of small_model on the zero stream. */
sp_status tensor_run_small(sp_model model, sp_tensor x, sp_tensor *y);

/* y = Tanh(x) of [n, 3], which small_model's y may be; and the same on floats of the cpu. */
sp_model tanh_model(sp_device device);
void tanh_of(const float *x, uint32_t count, float *y);
/* What small_model computes of these rows, by sp_model_run. */
void small_of_rows(sp_model model, uint64_t first, uint64_t rows, float *y);
/* Whether the tensor has these elements, in order. Releases it. */
bool take_floats(sp_tensor tensor, const float *wanted, uint64_t count);

/* The calling thread's stream of the device. */
sp_stream current_on(sp_device device);

/* A gate that the stream waits for, see runtime_fixture.h. */
gate gate_on(sp_device device, sp_stream stream);

#endif
