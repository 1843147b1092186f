/* SPDX-License-Identifier: Apache-2.0 */
/* Host accesses of the library itself. */
#ifndef SP_RUNTIME_HOST_ACCESS_H
#define SP_RUNTIME_HOST_ACCESS_H

#include <streampool/storage.h>

typedef struct sp_host_ticket sp_host_ticket;
typedef struct sp_mirror sp_mirror;

/* An access of a call, which ends it before it returns. Unlike those of the program it is ended by
 * its ticket, so its end is never taken for that of another one. */
typedef struct sp_own_access {
    sp_storage storage;
    sp_host_ticket *ticket; /* NULL: of a frozen storage, */
    sp_mirror *mirror;      /* then a reference to what is read, or NULL: the memory itself */
    void *data; /* the first byte of the range; NULL if that is empty, or of a bare one */
} sp_own_access;

/* As sp_storage_host_begin_range. `call_site` is for the checker (SP_CALL_SITE). */
sp_status sp__host_begin_own(sp_storage_range range, sp_access access, const void *call_site,
                             sp_own_access *out);
/* To all of the storage, for the order alone: the bytes are not accessed. */
sp_status sp__host_begin_bare(sp_storage storage, sp_access access, const void *call_site,
                              sp_own_access *out);
/* As sp_storage_host_end. */
sp_status sp__host_end_own(const sp_own_access *access);

#endif
