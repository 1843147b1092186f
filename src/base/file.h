/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, and the folders they go into. */
#ifndef SP_BASE_FILE_H
#define SP_BASE_FILE_H

#include <stddef.h>

#include <streampool/status.h>

/* Reads a file into memory that the caller frees with sp_free. SP_IO, with the file's name, also
 * for a directory; SP_OUT_OF_MEMORY. */
sp_status sp_file_read(const char *path, void **bytes, size_t *len);

/* Creates or overwrites a file. SP_IO, with its name. */
sp_status sp_file_write(const char *path, const void *bytes, size_t len);

/* The same, atomically: an open finds the old file or the whole new one, also when several threads
 * or processes replace it at once (the new file is written beside the old one and renamed). On
 * failure the old file is unchanged. Symbolic links are followed, also dangling ones. A new file
 * has mode 0666 without the bits of the umask, a replaced one keeps its mode. A device or pipe of
 * that name is written to. */
sp_status sp_file_replace(const char *path, const void *bytes, size_t len);

/* The folder of a file: the part of the path before the last slash, or ".". The caller frees it
 * with sp_free; NULL without memory. */
char *sp_file_folder(const char *path);

/* Creates a folder, accessible to this user only, and its missing parents. SP_OK if it exists;
 * SP_IO, with its name. */
sp_status sp_folder_create(const char *path);

#endif
