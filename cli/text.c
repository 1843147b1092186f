/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 104, KEPT_BYTES = 48 };

static void text_put(char *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        out[i] = c >= 0x20 && c != 0x7f ? (char)c : '?';
    }
    out[len] = '\0';
}

shown_text show_name(const char *name)
{
    shown_text out;
    const size_t len = strlen(name);
    if (len < NAME_BYTES) {
        text_put(out.text, name, len);
    } else {
        text_put(out.text, name, KEPT_BYTES);
        text_put(out.text + KEPT_BYTES, "...", 3);
        text_put(out.text + KEPT_BYTES + 3, name + len - KEPT_BYTES, KEPT_BYTES);
    }
    return out;
}

/* A name with an apostrophe is not escaped. */
shown_text quote_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:,+@%";
    const shown_text shown = show_name(name);
    if (shown.text[strspn(shown.text, plain)] == '\0') return shown;
    shown_text out;
    snprintf(out.text, sizeof out.text, "'%.180s'", shown.text);
    return out;
}

bool text_ends_in(const char *text, const char *ending)
{
    const size_t len = strlen(text), ending_len = strlen(ending);
    return len >= ending_len && strcmp(text + len - ending_len, ending) == 0;
}

bool file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

shown_text show_error(int error)
{
    shown_text out;
    char text[128];
    snprintf(out.text, sizeof out.text, "%s", strerror_r(error, text, sizeof text));
    return out;
}

/* ---- UTF-8 ---- */

/* The second byte has bounds of its own: no overlong forms, surrogates, or code points behind the
 * last one (RFC 3629, section 4). */
static bool second_is_valid(unsigned char first, unsigned char second)
{
    const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= least && second <= most;
}

size_t utf8_length(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80) return at[0] != 0 ? 1 : 0;
    if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
    const size_t length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (!second_is_valid(at[0], at[1])) return 0;
    for (size_t i = 2; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    return length;
}

void print_json_text(const char *text)
{
    putchar('"');
    for (const char *at = text; *at != '\0';) {
        const unsigned char c = (unsigned char)*at;
        const size_t length = utf8_length(at);
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else if (length == 0) fputs("\\ufffd", stdout);
        else fwrite(at, 1, length, stdout);
        at += length > 0 ? length : 1;
    }
    putchar('"');
}

/* Each dimension has at most 20 digits and a comma. */
shown_text show_shape(uint32_t rank, const int64_t *shape)
{
    shown_text out = {"["};
    size_t used = 1;
    for (uint32_t i = 0; i < rank; i++) {
        const int length = snprintf(out.text + used, sizeof out.text - used, "%s%" PRId64,
                                    i > 0 ? "," : "", shape[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    snprintf(out.text + used, sizeof out.text - used, "]");
    return out;
}
