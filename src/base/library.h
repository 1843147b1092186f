/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries loaded at run time: drivers, which may not be installed. */
#ifndef SP_BASE_LIBRARY_H
#define SP_BASE_LIBRARY_H

#include <streampool/status.h>

typedef struct sp_library {
    void *impl; /* NULL: not open */
} sp_library;

/* Opens the first of `names` (terminated by NULL) that can be loaded. SP_NOT_FOUND, with the
 * system's reason for the last one. Libraries are never closed, since their threads and callbacks
 * may outlive any use. */
sp_status sp_library_open(const char *const *names, sp_library *out);

/* The address of a function, or NULL. */
typedef void (*sp_library_function)(void);
sp_library_function sp_library_find(sp_library library, const char *symbol);

#endif
