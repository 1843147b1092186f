/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose steps alternate between two devices: a null device or the fake CUDA driver beside
 * cpu, as STREAMPOOL_TEST_DEVICE says, or cpu alone; the ops on cpu are those of
 * STREAMPOOL_CPU_OPS. */
#ifndef SP_TESTS_SEGMENT_FIXTURE_H
#define SP_TESTS_SEGMENT_FIXTURE_H

#include "run_fixture.h"
#include "runtime_fixture.h"

/* Starts a fresh runtime and opens the device. */
sp_device segment_begin(void);
sp_device segment_begin_with(const runtime_setting *setting);
/* All models must be released; checks that nothing remains. */
void segment_end(void);
bool segment_is_cuda(void);
bool segment_is_cpu(void);

/* Sets STREAMPOOL_CPU_OPS for the models that are compiled from now on; NULL: its value at the
 * start of the test. */
void segment_set_ops(const char *ops);

/* Opens a model on the device; the outputs to compare with are those of cpu. */
bool segment_open(const char *name, sp_device device, model_case *out);

sp_model_info segment_info(const model_case *c);

#endif
