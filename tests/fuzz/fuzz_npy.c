/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file: an error, or an array that is unchanged after writing and reading
 * it. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "fuzz.h"
#include "io/npy.h"

static void check_again(const sp_array *array)
{
    const sp_array_view view = {array->dtype, array->shape, array->data};
    void *bytes;
    size_t len;
    sp_array again;
    if (sp__npy_save(&view, &bytes, &len) != SP_OK) abort();
    if (sp__npy_load(bytes, len, &again) != SP_OK) abort();
    if (again.dtype != array->dtype || !sp__shape_equal(&again.shape, &array->shape)) abort();
    if (memcmp(again.data, array->data, (size_t)array->bytes) != 0) abort();
    sp__array_deinit(&again);
    sp_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sp_array array;
    if (sp__npy_load(data, size, &array) != SP_OK) return 0;
    if (array.bytes > size) abort();
    check_again(&array);
    sp__array_deinit(&array);
    return 0;
}
