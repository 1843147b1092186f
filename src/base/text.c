/* SPDX-License-Identifier: Apache-2.0 */
/* Printable forms of text with any bytes. */
#include "base/text.h"

static size_t text_put(char *out, sp_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        out[i] = c >= 0x20 && c != 0x7f ? (char)c : '?';
    }
    return text.len;
}

sp_text_print sp__text_print(sp_text text)
{
    enum { KEPT = 48 };
    sp_text_print out;
    size_t used;
    if (text.len < SP_TEXT_PRINT_BYTES) {
        used = text_put(out.text, text);
    } else {
        used = text_put(out.text, (sp_text){text.ptr, KEPT});
        used += text_put(out.text + used, sp__text("..."));
        used += text_put(out.text + used, (sp_text){text.ptr + text.len - KEPT, KEPT});
    }
    out.text[used] = '\0';
    return out;
}
