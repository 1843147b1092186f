// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <c10/util/Exception.h>

namespace streampool_torch
{
void fail(sp_status status)
{
    const char *text = sp_last_error();
    if (status == SP_OUT_OF_MEMORY) TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    if (status == SP_UNSUPPORTED) TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    TORCH_CHECK(false, text, " (", sp_status_name(status), ")");
}

sp_stream current_stream()
{
    sp_stream stream;
    check(sp_stream_current({0}, &stream));
    return stream;
}

void make_room()
{
    // The status is that of earlier commands, whose outputs are poisoned: their readers report it.
    (void)sp_stream_synchronize(current_stream());
}
} // namespace streampool_torch
