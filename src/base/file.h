/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, and the folders they go into. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H

#include <stddef.h>

#include <streampool/status.h>

/* Reads a file into memory that the caller frees with sp_free. SP_IO naming the file, also for a
 * directory; SP_OUT_OF_MEMORY. */
sp_status sp_file_read(const char *path, void **bytes, size_t *len);

/* Writes a file anew. SP_IO naming it. */
sp_status sp_file_write(const char *path, const void *bytes, size_t len);

/* The same, but whoever opens the file meanwhile finds the old one or the whole new one, also when
 * several threads or processes replace it at once: it is written beside and renamed. On failure the
 * old one is as it was. Symbolic links are followed, also to a file that is not there yet. A new
 * file has the mode that the umask leaves of 0666, one that is replaced keeps its mode. A device or
 * pipe of that name is written to. */
sp_status sp_file_replace(const char *path, const void *bytes, size_t len);

/* The folder that a file stands in: what is before the last slash, or ".". The caller frees it with
 * sp_free; NULL without memory. */
char *sp_file_folder(const char *path);

/* Makes a folder for this user alone, and those above it that are missing. SP_OK if it is there,
 * SP_IO naming it. */
sp_status sp_folder_create(const char *path);

#endif
