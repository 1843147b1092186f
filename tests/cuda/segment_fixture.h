/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose steps take turns on two devices: a null device or the driver made of threads beside
 * cpu, as STREAMPOOL_TEST_DEVICE says; the ops on cpu are those of STREAMPOOL_CPU_OPS. */
#ifndef SP_TESTS_SEGMENT_FIXTURE_H
#define SP_TESTS_SEGMENT_FIXTURE_H

#include "run_fixture.h"
#include "runtime_fixture.h"

/* A fresh runtime and the device. */
sp_device segment_begin(void);
sp_device segment_begin_with(const runtime_setting *setting);
/* All models are released: nothing is left. */
void segment_end(void);
bool segment_is_cuda(void);

/* The option for the models that are compiled from now on; as the run of the test has it if NULL.
 */
void segment_set_ops(const char *ops);

/* Opens a model there; its outputs are those of the cpu, which they are compared with. */
bool segment_open(const char *name, sp_device device, model_case *out);

sp_model_info segment_info(const model_case *c);

#endif
