/* SPDX-License-Identifier: Apache-2.0 */
/* Argument checks of copies and fills, submitted alone or recorded into a list. */
#ifndef SP_RUNTIME_STORAGE_OPS_H
#define SP_RUNTIME_STORAGE_OPS_H

#include <streampool/storage.h>

/* SP_MISMATCH if the ranges differ in size. */
sp_status sp__copy_check(const sp_storage_range *destination, const sp_storage_range *source);

/* SP_INVALID if a range of `bytes` cannot be filled with the pattern. */
sp_status sp__fill_check(uint64_t bytes, const void *pattern, uint32_t pattern_bytes);

#endif
