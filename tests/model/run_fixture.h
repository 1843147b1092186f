/* SPDX-License-Identifier: Apache-2.0 */
/* Models of shared/data, loaded through the public API, with their inputs and their outputs in a
 * single-threaded run. */
#ifndef SP_TESTS_RUN_FIXTURE_H
#define SP_TESTS_RUN_FIXTURE_H

#include <streampool/model.h>

#include "base/atomic.h"
#include "device/device.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/tensors.h"
#include "support/test.h"

#define FIXTURE_PORTS 8

/* The six models of the first milestone. */
#define FIXTURE_MODELS 6
extern const char *const fixture_models[FIXTURE_MODELS];
/* All models of shared/data. */
#define FIXTURE_ALL_MODELS 27
extern const char *const fixture_all_models[FIXTURE_ALL_MODELS];

typedef struct model_case {
    sp_model model;
    sp_array inputs[FIXTURE_PORTS];
    sp_array outputs[FIXTURE_PORTS]; /* of one thread, alone */
    uint32_t input_count, output_count;
} model_case;

/* False if the data does not exist: skip the test. Set 0 is the input. */
bool case_open(const char *name, const sp_model_options *options, model_case *out);
void case_close(model_case *c);

/* Allocate and free arrays for the case's outputs. */
void outputs_make(const model_case *c, sp_array *outputs);
void outputs_free(const model_case *c, sp_array *outputs);
/* Sets all bytes of all outputs to 0xff, so that bytes not written by a run differ. */
void outputs_wipe(const model_case *c, const sp_array *outputs);

/* One run into `outputs`. */
sp_status case_run(const model_case *c, const sp_array *outputs);
/* Whether these are the bits of the single-threaded run. */
bool case_is_same(const model_case *c, const sp_array *outputs);

/* For test_threads: `rounds` runs, each into the thread's own outputs; counts those with other
 * bits. */
typedef struct case_load {
    const model_case *c;
    uint32_t rounds;
    sp_atomic_u32 differing;
} case_load;
void case_run_rounds(void *arg, uint32_t index);

/* For test_threads: `rounds` runs of each case by each thread, each thread beginning at another
 * case. */
typedef struct cases_load {
    model_case *cases;
    uint32_t count;
    uint32_t rounds;
    sp_atomic_u32 differing;
} cases_load;
void cases_run_rounds(void *arg, uint32_t index);
/* Opens the named models; false, with none open, if the data does not exist. */
bool cases_open(const char *const *names, uint32_t count, const sp_model_options *options,
                cases_load *out);
void cases_close(cases_load *l);

/* A model y = tanh(x * w - b) with `n` free: x is [n, 4], w [4, 3]. Two steps: a product adds what
 * follows it, but subtracts nothing. */
sp_model small_model(const sp_model_options *options);

/* A model of opset 13; takes the graph. */
sp_model graph_load(writer *graph, const sp_model_options *options);
#define SMALL_IN 4
#define SMALL_OUT 3
/* `rows` rows of its x, from row `first` on; the values of a row depend on its number only. */
void small_fill_rows(float *x, uint64_t first, uint64_t rows);
sp_status small_run_rows(sp_model model, const float *x, uint64_t rows, float *y);
sp_model_info model_info_of(sp_model model);
sp_model_statistics statistics_of(sp_model model);
/* Yields until so many runs of the model have slots: a run that has begun, which `runs` of its
 * information counts, may not have one yet. */
void await_in_flight(sp_model model, uint32_t count);
/* Up to 2 rows of fixed values for its x; and a tensor for `count` floats. */
sp_host_tensor input_x(int64_t rows);
sp_host_tensor output_y(float *data, uint64_t count);

/* The result of a run on input_x(1), compared as bits. */
typedef struct small_row {
    _Alignas(float) unsigned char bytes[3 * sizeof(float)];
} small_row;
sp_status small_submit(sp_model model, small_row *out, sp_future *future);
/* The same with a token, or the zero one. */
sp_status small_submit_with(sp_model model, sp_cancel_token token, small_row *out,
                            sp_future *future);
sp_status small_run_with(sp_model model, sp_cancel_token token, small_row *out);
small_row small_run(sp_model model);
bool small_is_same(const small_row *a, const small_row *b);
/* Yields until the count, raised by other threads, reaches `wanted`. */
void await_count(sp_atomic_u32 *count, uint32_t wanted);

/* A null device of its own, for faults, and options for models on it. */
typedef struct null_fixture {
    sp_device device;
    sp_dev *dev;
    sp_model_options options;
} null_fixture;

null_fixture null_open(void);

/* Every public call on a model except the release, with valid arguments for small_model's: each
 * returns SP_OK, or a refusal because of the model's or the library's state. Leaves all state
 * unchanged. */
typedef struct model_call {
    const char *name;
    sp_status (*run)(sp_model model);
} model_call;

extern const model_call model_calls[];
extern const uint32_t model_call_count;

#endif
