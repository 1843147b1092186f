/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a zip archive: errors, or members no larger than their bytes can expand to. Since
 * checksums reject most of those, also any bytes after a size as a deflate stream. */
#include <stdlib.h>

#include "base/heap.h"
#include "fuzz.h"
#include "base/inflate.h"
#include "io/zip.h"

static void read_archive(const uint8_t *data, size_t size)
{
    sp_zip zip;
    if (sp__zip_open(data, size, &zip) != SP_OK) return;
    for (int i = 0; i < 16; i++) { /* entries may share the same bytes */
        sp_zip_entry entry;
        bool has_one;
        void *bytes;
        size_t len;
        if (sp__zip_next(&zip, &entry, &has_one) != SP_OK || !has_one) return;
        if (sp__zip_read(&entry, &bytes, &len) != SP_OK) continue;
        if (len > size * SP_INFLATE_MOST) abort();
        sp_free(bytes);
    }
}

static void read_stream(const uint8_t *data, size_t size)
{
    if (size < 2) return;
    const size_t len = data[0] | (size_t)data[1] << 8;
    uint8_t *out = malloc(len + (len == 0));
    if (out == NULL) return;
    (void)sp__inflate(data + 2, size - 2, out, len);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_archive(data, size);
    read_stream(data, size);
    return 0;
}
