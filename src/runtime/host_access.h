/* SPDX-License-Identifier: Apache-2.0 */
/* Host accesses of the library itself. */
#ifndef SP_RUNTIME_HOST_ACCESS_H
#define SP_RUNTIME_HOST_ACCESS_H

#include <streampool/storage.h>

/* As sp_storage_host_begin, for the order alone: the bytes are not accessed. Ends with
 * sp_storage_host_end. `call_site` is for the checker (SP_CALL_SITE). */
sp_status sp__host_begin_bare(sp_storage storage, sp_access access, const void *call_site);

#endif
