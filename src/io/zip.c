/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing archives. Their numbers are little-endian and unaligned. */
#include "io/zip.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/inflate.h"

enum {
    LOCAL_SIGNATURE = 0x04034b50,
    ENTRY_SIGNATURE = 0x02014b50,
    END_SIGNATURE = 0x06054b50,
    LOCAL_BYTES = 30, /* before the name */
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    MOST_COMMENT = 0xffff
};

static uint32_t u16_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

static sp_status zip_malformed(const char *what)
{
    return sp__fail(SP_CORRUPT, "malformed zip archive: %s", what);
}

static sp_status refuse_zip64(void)
{
    return sp__fail(SP_UNSUPPORTED, "a zip archive of 4 GiB or more, or of more than 65,534 "
                                    "members, is not supported: save the arrays as .npy files");
}

uint32_t sp__crc32(const void *bytes, size_t len)
{
    /* One entry per half byte. */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *at = bytes;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* ---- reading ---- */

sp_status sp__zip_open(const void *bytes, size_t len, sp_zip *out)
{
    const uint8_t *file = bytes;
    /* The end record is last in the file, before a comment. */
    size_t end = len;
    for (size_t back = END_BYTES; back <= len && back <= END_BYTES + MOST_COMMENT; back++) {
        if (u32_at(file + len - back) != END_SIGNATURE) continue;
        if (u16_at(file + len - back + 20) != back - END_BYTES) continue;
        end = len - back;
        break;
    }
    if (end == len) return zip_malformed("the directory is missing");
    const uint8_t *record = file + end;
    const uint32_t count = u16_at(record + 10), size = u32_at(record + 12);
    const uint32_t offset = u32_at(record + 16);
    if (count == 0xffff || offset == UINT32_MAX) return refuse_zip64();
    if (u16_at(record + 4) != 0 || u16_at(record + 8) != count) {
        return sp__fail(SP_UNSUPPORTED, "a zip archive of several parts is not supported");
    }
    if (offset > end || size > end - offset)
        return zip_malformed("the directory is outside the file");
    *out = (sp_zip){.bytes = file, .len = end, .at = offset, .left = count};
    return SP_OK;
}

/* Finds the member's bytes: the directory has the sizes, but the length of the local name may
 * differ. */
static sp_status find_data(const sp_zip *zip, uint32_t offset, sp_zip_entry *entry)
{
    if (offset > zip->len || zip->len - offset < LOCAL_BYTES) {
        return zip_malformed("a member is outside the file");
    }
    const uint8_t *local = zip->bytes + offset;
    if (u32_at(local) != LOCAL_SIGNATURE) return zip_malformed("a member has no header");
    const size_t head = LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
    const size_t room = zip->len - offset;
    if (head > room || entry->data_len > room - head) {
        return zip_malformed("a member is outside the file");
    }
    entry->data = local + head;
    return SP_OK;
}

sp_status sp__zip_next(sp_zip *zip, sp_zip_entry *out, bool *has_one)
{
    *has_one = zip->left > 0;
    if (zip->left == 0) return SP_OK;
    if (zip->len - zip->at < ENTRY_BYTES) return zip_malformed("the directory ends too early");
    const uint8_t *at = zip->bytes + zip->at;
    if (u32_at(at) != ENTRY_SIGNATURE)
        return zip_malformed("an entry of the directory has no signature");
    const size_t name_len = u16_at(at + 28);
    const size_t bytes = ENTRY_BYTES + name_len + u16_at(at + 30) + u16_at(at + 32);
    if (bytes > zip->len - zip->at) return zip_malformed("the directory ends too early");
    const uint32_t offset = u32_at(at + 42);
    *out = (sp_zip_entry){.name = {(const char *)at + ENTRY_BYTES, name_len},
                          .data_len = u32_at(at + 20),
                          .len = u32_at(at + 24),
                          .crc = u32_at(at + 16),
                          .method = u16_at(at + 10)};
    if (out->data_len == UINT32_MAX || out->len == UINT32_MAX || offset == UINT32_MAX) {
        return refuse_zip64();
    }
    if ((u16_at(at + 8) & 1) != 0) {
        return sp__fail(SP_UNSUPPORTED, "member '%s' of the archive is encrypted",
                        sp__text_print(out->name).text);
    }
    zip->at += bytes;
    zip->left--;
    return find_data(zip, offset, out);
}

static sp_status check_sizes(const sp_zip_entry *entry)
{
    if (entry->method != 0 && entry->method != 8) {
        return sp__fail(SP_UNSUPPORTED,
                        "member '%s' is compressed by method %" PRIu32
                        "; only stored and deflated ones are supported",
                        sp__text_print(entry->name).text, entry->method);
    }
    const uint64_t most =
        entry->method == 0 ? entry->data_len : (uint64_t)entry->data_len * SP_INFLATE_MOST;
    if (entry->len <= most && (entry->method == 8 || entry->len == entry->data_len)) return SP_OK;
    return sp__fail(SP_CORRUPT,
                    "malformed zip archive: member '%s' of %zu bytes cannot expand to %zu",
                    sp__text_print(entry->name).text, entry->data_len, entry->len);
}

sp_status sp__zip_read(const sp_zip_entry *entry, void **bytes, size_t *len)
{
    SP_TRY(check_sizes(entry));
    void *out = sp_malloc(entry->len);
    if (out == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the %zu bytes of member '%s'", entry->len,
                        sp__text_print(entry->name).text);
    }
    sp_status status = SP_OK;
    if (entry->method == 8) status = sp__inflate(entry->data, entry->data_len, out, entry->len);
    else if (entry->len > 0) memcpy(out, entry->data, entry->len);
    if (status == SP_OK && sp__crc32(out, entry->len) != entry->crc) {
        status = zip_malformed("a member's checksum is wrong");
    }
    if (status != SP_OK) {
        sp_free(out);
        return sp__fail_prefix(status, "member '%s': ", sp__text_print(entry->name).text);
    }
    *bytes = out;
    *len = entry->len;
    return SP_OK;
}

/* ---- writing ---- */

typedef struct output {
    uint8_t *bytes;
    size_t at;
} output;

static void output_put(output *o, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) o->bytes[o->at++] = (uint8_t)(value >> 8 * i);
}

static void output_put_bytes(output *o, const void *bytes, size_t len)
{
    if (len > 0) memcpy(o->bytes + o->at, bytes, len);
    o->at += len;
}

/* Fields that a member's header and its entry in the directory share. */
static void put_common_fields(output *o, const sp_zip_member *member, uint32_t crc)
{
    output_put(o, 20, 2);         /* the required version of the format */
    output_put(o, 1 << 11, 2);    /* the name is UTF-8 */
    output_put(o, 0, 2);          /* stored */
    output_put(o, 0, 2);          /* midnight */
    output_put(o, 1 << 5 | 1, 2); /* of the first day of 1980: the same bytes each time */
    output_put(o, crc, 4);
    output_put(o, (uint32_t)member->len, 4);
    output_put(o, (uint32_t)member->len, 4);
    output_put(o, (uint32_t)strlen(member->name), 2);
    output_put(o, 0, 2); /* no extra field */
}

static void put_entry(output *o, const sp_zip_member *member, uint32_t crc, uint32_t offset)
{
    output_put(o, ENTRY_SIGNATURE, 4);
    output_put(o, 20, 2);
    put_common_fields(o, member, crc);
    output_put(o, 0, 2); /* no comment */
    output_put(o, 0, 2); /* first disk */
    output_put(o, 0, 2);
    output_put(o, 0, 4);
    output_put(o, offset, 4);
    output_put_bytes(o, member->name, strlen(member->name));
}

static sp_status find_size(const sp_zip_member *members, uint32_t count, size_t *out)
{
    size_t total = END_BYTES;
    bool fits = count < 0xffff;
    for (uint32_t i = 0; fits && i < count; i++) {
        const size_t name = strlen(members[i].name);
        total += LOCAL_BYTES + ENTRY_BYTES + 2 * name;
        fits = name <= 0xffff && members[i].len < UINT32_MAX && total < UINT32_MAX;
        total += members[i].len;
    }
    *out = total;
    return fits && total < UINT32_MAX ? SP_OK : refuse_zip64();
}

sp_status sp__zip_save(const sp_zip_member *members, uint32_t count, void **bytes, size_t *len)
{
    size_t total;
    SP_TRY(find_size(members, count, &total));
    output o = {.bytes = sp_malloc(total)};
    if (o.bytes == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for an archive of %zu bytes", total);
    }
    for (uint32_t i = 0; i < count; i++) {
        output_put(&o, LOCAL_SIGNATURE, 4);
        put_common_fields(&o, &members[i], sp__crc32(members[i].bytes, members[i].len));
        output_put_bytes(&o, members[i].name, strlen(members[i].name));
        output_put_bytes(&o, members[i].bytes, members[i].len);
    }
    const size_t directory = o.at;
    uint32_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *local = o.bytes + offset;
        put_entry(&o, &members[i], u32_at(local + 14), offset);
        offset += (uint32_t)(LOCAL_BYTES + strlen(members[i].name) + members[i].len);
    }
    const size_t directory_len = o.at - directory;
    output_put(&o, END_SIGNATURE, 4);
    output_put(&o, 0, 4); /* this disk and that of the directory */
    output_put(&o, count, 2);
    output_put(&o, count, 2);
    output_put(&o, (uint32_t)directory_len, 4);
    output_put(&o, (uint32_t)directory, 4);
    output_put(&o, 0, 2); /* no comment */
    *bytes = o.bytes;
    *len = total;
    return SP_OK;
}
