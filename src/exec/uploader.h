/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads to device memory that the host cannot access. */
#ifndef SP_EXEC_UPLOADER_H
#define SP_EXEC_UPLOADER_H

#include "runtime/runtime_state.h"

/* Writes consecutive bytes of device memory from pageable host memory, through pinned memory of a
 * fixed size: while one half is copied, the other one is filled. One thread. */
typedef struct sp_uploader {
    sp_rt_device *device;
    const sp_memory *memory;
    uint64_t offset; /* in `memory`, of the next copy */
    sp_block *block;
    unsigned char *host;
    uint64_t half_bytes;
    uint64_t filled;    /* of the half that is being filled */
    uint32_t half;      /* which one */
    sp_point copied[2]; /* the newest copy of each half */
} sp_uploader;

/* `bytes` from `offset` on will be written. Ends with sp__uploader_end, also after a failure. */
sp_status sp__uploader_begin(sp_uploader *uploader, sp_rt_device *device, const sp_memory *memory,
                             uint64_t offset, uint64_t bytes);
/* The next bytes; NULL: zeros. */
sp_status sp__uploader_write(sp_uploader *uploader, const void *data, uint64_t bytes);
/* Waits for all copies. Returns `status`, or the failure of a copy. */
sp_status sp__uploader_end(sp_uploader *uploader, sp_status status);

#endif
