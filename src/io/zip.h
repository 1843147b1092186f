/* SPDX-License-Identifier: Apache-2.0 */
/* Zip archives in memory, as far as .npz files need them: members that are stored or deflated, in
 * archives below 4 GiB. No field is trusted: each offset and size is checked against the file, and
 * a member's memory is bounded by what its compressed bytes can grow to. */
#ifndef SP_IO_ZIP_H
#define SP_IO_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"

/* The directory of an archive whose bytes are borrowed. */
typedef struct sp_zip {
    const uint8_t *bytes;
    size_t len;
    size_t at;     /* offset of the next entry */
    uint32_t left; /* remaining entries */
} sp_zip;

typedef struct sp_zip_entry {
    sp_text name;
    const uint8_t *data; /* as stored in the archive */
    size_t data_len;
    size_t len; /* of the member */
    uint32_t crc;
    uint32_t method; /* 0 stored, 8 deflated */
} sp_zip_entry;

/* Finds the directory. SP_CORRUPT if there is none, SP_UNSUPPORTED for several disks, or for zip64
 * (more than 4 GiB or 65,534 members). */
sp_status sp__zip_open(const void *bytes, size_t len, sp_zip *out);

/* The next entry; `*has_one` is false after the last. */
sp_status sp__zip_next(sp_zip *zip, sp_zip_entry *out, bool *has_one);

/* The member's bytes, checked, in memory that the caller frees with sp_free. */
sp_status sp__zip_read(const sp_zip_entry *entry, void **bytes, size_t *len);

/* A member to write. */
typedef struct sp_zip_member {
    const char *name;
    const void *bytes;
    size_t len;
} sp_zip_member;

/* An archive of stored members, in memory that the caller frees with sp_free. SP_UNSUPPORTED above
 * 4 GiB or 65,534 members. */
sp_status sp__zip_save(const sp_zip_member *members, uint32_t count, void **bytes, size_t *len);

/* The checksum of zip (CRC-32). */
uint32_t sp__crc32(const void *bytes, size_t len);

#endif
