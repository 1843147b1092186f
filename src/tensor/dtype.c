/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and names of element types, from the one list in the public header. */
#include <streampool/dtype.h>

#include "base/macros.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {[SP_DTYPE_NONE] = {"none", 0},
#define SP_DTYPE_ROW(code, value, name, bytes) [code] = {name, bytes},
              SP_DTYPE_LIST(SP_DTYPE_ROW)
#undef SP_DTYPE_ROW
};

/* C allows any integer here. */
static size_t row_of(sp_dtype dtype)
{
    return (size_t)dtype < SP_COUNT_OF(dtypes) ? (size_t)dtype : SP_DTYPE_NONE;
}

size_t sp_dtype_bytes(sp_dtype dtype)
{
    return dtypes[row_of(dtype)].bytes;
}

const char *sp_dtype_name(sp_dtype dtype)
{
    return dtypes[row_of(dtype)].name;
}
