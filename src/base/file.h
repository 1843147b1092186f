/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H

#include <stddef.h>

#include <streampool/status.h>

/* Reads a file into memory that the caller frees with sp_free. SP_IO naming the file, also for a
 * directory; SP_OUT_OF_MEMORY. */
sp_status sp_file_read(const char *path, void **bytes, size_t *len);

/* Writes a file anew. SP_IO naming it. */
sp_status sp_file_write(const char *path, const void *bytes, size_t len);

#endif
