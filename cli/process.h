/* SPDX-License-Identifier: Apache-2.0 */
/* What the operating system tells about the process: its clock, its processors and its memory. */
#ifndef SP_CLI_PROCESS_H
#define SP_CLI_PROCESS_H

#include <stdint.h>

/* Monotonic. */
uint64_t clock_ns(void);

/* CPU time of all threads, those that have ended included. */
uint64_t process_cpu_ns(void);

/* Memory that is resident; 0 if the system does not say. */
typedef struct process_memory {
    uint64_t now_bytes;
    uint64_t peak_bytes; /* since the start of the process */
} process_memory;

process_memory process_memory_read(void);

#endif
