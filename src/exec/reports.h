/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a run's kernels (device/gpu_kernel.h): those of the steps of an executable that
 * can report, in host memory of the context, which the kernels write to. They are read when the run
 * has ended: the run fails then. */
#ifndef SP_EXEC_REPORTS_H
#define SP_EXEC_REPORTS_H

#include "device/command.h"
#include "exec/executable.h"

/* Finds the executable's steps that report; it has its segments. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__reporting_init(sp_executable *executable);
void sp__reporting_deinit(sp_executable *executable);

/* Memory for the reports of a context, cleared; nothing without steps that report. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__reports_create(sp_exec_context *context);
void sp__reports_destroy(sp_exec_context *context);

/* Whether the step reports; then its report is bound. */
bool sp__reports_bind(const sp_exec_context *context, uint32_t step, sp_binding *out);

/* After the run's last point: SP_INVALID naming the first step that has reported, whose report is
 * cleared, as all others are. */
sp_status sp__reports_take(const sp_exec_context *context);
/* A run that has failed otherwise leaves its reports: when it returns the context. */
void sp__reports_clear(const sp_exec_context *context);

#endif
