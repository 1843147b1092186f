/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills of storages, as commands. */
#include "runtime/storage_ops.h"

#include "base/error.h"
#include "runtime/checker.h"
#include "runtime/device_copy.h"
#include "runtime/runtime_state.h"
#include "runtime/submit.h"

static sp_use use_of(sp_storage_range range, sp_access access)
{
    return (sp_use){.storage = range.storage,
                    .offset = range.offset,
                    .bytes = range.bytes,
                    .access = access,
                    .is_overwritten = access == SP_WRITE};
}

sp_status sp__copy_check(const sp_storage_range *destination, const sp_storage_range *source)
{
    if (destination->bytes == source->bytes) return SP_OK;
    return sp__fail(SP_MISMATCH, "a copy of %llu bytes into a range of %llu bytes: make them equal",
                    (unsigned long long)source->bytes, (unsigned long long)destination->bytes);
}

sp_status sp__fill_check(uint64_t bytes, const void *pattern, uint32_t pattern_bytes)
{
    const bool is_size =
        pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 || pattern_bytes == 8;
    if (pattern != NULL && is_size && bytes % pattern_bytes == 0) return SP_OK;
    return sp__fail(SP_INVALID, "a fill needs a pattern of 1, 2, 4 or 8 bytes and a range of a "
                                "multiple of that");
}

sp_status sp_storage_copy_async(sp_stream stream, sp_storage_range destination,
                                sp_storage_range source)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    SP_TRY(sp__copy_check(&destination, &source));
    const sp_use uses[2] = {use_of(destination, SP_WRITE), use_of(source, SP_READ)};
    return sp__copy_submit(&ref, uses, SP_CALL_SITE);
}

sp_status sp_storage_fill_async(sp_stream stream, sp_storage_range destination, const void *pattern,
                                uint32_t pattern_bytes)
{
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    SP_TRY(sp__fill_check(destination.bytes, pattern, pattern_bytes));
    const sp_use use = use_of(destination, SP_WRITE);
    sp_command command = {
        .type = SP_COMMAND_FILL, .constants = pattern, .constant_bytes = pattern_bytes};
    sp_point point;
    return sp__submit_command(&ref, &command, &use, 1, SP_CALL_SITE, &point);
}
