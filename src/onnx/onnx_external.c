/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers with values in a file beside the model's: checks and reads that file. */
#include <inttypes.h>

#include "base/error.h"
#include "base/file_below.h"
#include "base/macros.h"
#include "onnx/onnx_reader.h"

/* The file's name, NUL-terminated. */
static sp_status location_of(const sp_onnx_tensor *tensor, char name[SP_FILE_BELOW_BYTES])
{
    const sp_text text = tensor->content;
    const bool is_text =
        text.len > 0 && text.len < SP_FILE_BELOW_BYTES && memchr(text.ptr, '\0', text.len) == NULL;
    if (!is_text) {
        return sp__fail(SP_CORRUPT, "its external data has no file name, or one of %zu bytes",
                        text.len);
    }
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    return SP_OK;
}

static sp_status external_check(const sp_onnx_tensor *tensor, const char *folder)
{
    char name[SP_FILE_BELOW_BYTES];
    uint64_t bytes;
    SP_TRY(location_of(tensor, name));
    if (folder == NULL) {
        return sp__fail(SP_INVALID,
                        "its data is in the file '%s' beside the model's: load the model by its "
                        "path",
                        sp__text_print(tensor->content).text);
    }
    SP_TRY(sp_file_size_below(folder, name, &bytes));
    if (tensor->offset <= bytes && tensor->bytes <= bytes - tensor->offset) return SP_OK;
    return sp__fail(SP_CORRUPT,
                    "file '%s' has %" PRIu64 " bytes, bytes %" PRIu64 " + %" PRIu64 " are wanted",
                    sp__text_print(tensor->content).text, bytes, tensor->offset, tensor->bytes);
}

static sp_status name_tensor(sp_status status, const sp_onnx_tensor *tensor)
{
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "tensor '%s': ", sp__text_print(tensor->name).text);
}

sp_status sp__onnx_external_check(const sp_onnx_tensor *tensor, const char *folder)
{
    return name_tensor(external_check(tensor, folder), tensor);
}

sp_status sp__onnx_external_read(const sp_onnx_tensor *tensor, const char *folder, void *out)
{
    char name[SP_FILE_BELOW_BYTES];
    SP_TRY(location_of(tensor, name));
    const sp_status status =
        sp_file_read_below(folder, name, tensor->offset, out, (size_t)tensor->bytes);
    if (status == SP_OK) sp__onnx_clean_bools(tensor, out);
    return name_tensor(status, tensor);
}
