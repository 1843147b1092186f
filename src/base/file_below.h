/* SPDX-License-Identifier: Apache-2.0 */
/* Reads parts of files whose names come from another, untrusted file: always below one folder. A
 * name is a relative path of plain parts ("data/weights.bin"); "..", empty parts, absolute paths,
 * symbolic links and anything but regular files are refused. */
#ifndef SP_BASE_FILE_BELOW_H
#define SP_BASE_FILE_BELOW_H

#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

/* Longest name, including the terminator. */
#define SP_FILE_BELOW_BYTES 1024

/* Bytes of the file. SP_CORRUPT for a name that is refused, SP_IO. */
sp_status sp_file_size_below(const char *folder, const char *name, uint64_t *bytes);

/* Reads `len` bytes from `offset` on. Errors: the same; SP_CORRUPT if the file is shorter. */
sp_status sp_file_read_below(const char *folder, const char *name, uint64_t offset, void *out,
                             size_t len);

#endif
