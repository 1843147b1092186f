/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of arrays into tensors, and writing them. */
#include <streampool/npy.h>

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "io/npy.h"
#include "io/tensor_file.h"
#include "io/zip.h"
#include "runtime/runtime_state.h"

static const char suffix[] = ".npy"; /* of the members of a .npz file */

/* ---- reading ---- */

sp_status sp_npy_read_from_memory(sp_device device, const void *bytes, size_t len, sp_tensor *out)
{
    return sp__tensor_load_bytes(device, bytes, len, sp__npy_load, out);
}

sp_status sp_npy_read(sp_device device, const char *path, sp_tensor *out)
{
    return sp__tensor_load_file(device, path, sp__npy_load, out);
}

/* The name of a member's array: without the suffix. */
static sp_text array_name(sp_text member)
{
    const size_t len = strlen(suffix);
    if (member.len >= len && memcmp(member.ptr + member.len - len, suffix, len) == 0) {
        member.len -= len;
    }
    return member;
}

static sp_status visit_names(const void *bytes, size_t len, sp_npz_visitor visit, void *ctx)
{
    sp_zip zip;
    sp_zip_entry entry;
    bool has_one;
    SP_TRY(sp__zip_open(bytes, len, &zip));
    for (;;) {
        SP_TRY(sp__zip_next(&zip, &entry, &has_one));
        if (!has_one) return SP_OK;
        const sp_text name = array_name(entry.name);
        char *text = sp_malloc(name.len + 1);
        if (text == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a name");
        memcpy(text, name.ptr, name.len);
        text[name.len] = '\0';
        visit(ctx, text);
        sp_free(text);
    }
}

sp_status sp_npz_list(const char *path, sp_npz_visitor visit, void *ctx)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__runtime_enter());
    if (path == NULL || visit == NULL) {
        return sp__fail(SP_INVALID, "sp_npz_list: path or visit is NULL");
    }
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = visit_names(bytes, len, visit, ctx);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

static sp_status find_entry(const void *bytes, size_t len, const char *name, sp_zip_entry *out)
{
    sp_zip zip;
    bool has_one;
    SP_TRY(sp__zip_open(bytes, len, &zip));
    for (;;) {
        SP_TRY(sp__zip_next(&zip, out, &has_one));
        if (!has_one) return sp__fail(SP_NOT_FOUND, "there is no array '%s'", name);
        if (sp__text_is(out->name, name) || sp__text_is(array_name(out->name), name)) return SP_OK;
    }
}

static sp_status read_member(sp_device device, const void *bytes, size_t len, const char *name,
                             sp_tensor *out)
{
    sp_zip_entry entry;
    void *member;
    size_t member_len;
    SP_TRY(find_entry(bytes, len, name, &entry));
    SP_TRY(sp__zip_read(&entry, &member, &member_len));
    const sp_status status = sp__tensor_load(device, member, member_len, sp__npy_load, out);
    sp_free(member);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "array '%s': ", name);
}

sp_status sp_npz_read(sp_device device, const char *path, const char *name, sp_tensor *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__tensor_file_begin(path, out));
    if (name == NULL) return sp__fail(SP_INVALID, "sp_npz_read: name is NULL");
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = read_member(device, bytes, len, name, out);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

/* ---- writing ---- */

/* A whole .npy file in memory. */
static sp_status bytes_of_tensor(sp_tensor tensor, void **bytes, size_t *len)
{
    sp_array array;
    SP_TRY(sp__tensor_to_array(tensor, &array));
    const sp_array_view view = {.dtype = array.dtype, .shape = array.shape, .data = array.data};
    const sp_status status = sp__npy_save(&view, bytes, len);
    sp__array_deinit(&array);
    return status;
}

sp_status sp_npy_write(const char *path, sp_tensor tensor)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__runtime_enter());
    if (path == NULL) return sp__fail(SP_INVALID, "sp_npy_write: path is NULL");
    SP_TRY(bytes_of_tensor(tensor, &bytes, &len));
    const sp_status status = sp_file_replace(path, bytes, len);
    sp_free(bytes);
    return status;
}

static sp_status check_names(const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] == NULL || names[i][0] == '\0') {
            return sp__fail(SP_INVALID, "array %u of a .npz file has no name", i);
        }
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(names[i], names[k]) != 0) continue;
            return sp__fail(SP_INVALID, "two arrays of a .npz file are named '%s'", names[i]);
        }
    }
    return SP_OK;
}

/* Owned by the member until free_members. */
static sp_status make_member(const char *name, sp_tensor tensor, sp_zip_member *out)
{
    const size_t name_len = strlen(name);
    char *text = sp_malloc(name_len + sizeof suffix);
    if (text == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the name '%s'", name);
    memcpy(text, name, name_len);
    memcpy(text + name_len, suffix, sizeof suffix);
    void *bytes;
    size_t len;
    const sp_status status = bytes_of_tensor(tensor, &bytes, &len);
    if (status != SP_OK) {
        sp_free(text);
        return sp__fail_prefix(status, "array '%s': ", name);
    }
    *out = (sp_zip_member){.name = text, .bytes = bytes, .len = len};
    return SP_OK;
}

static void free_members(sp_zip_member *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sp_free((void *)members[i].name);
        sp_free((void *)members[i].bytes);
    }
    sp_free(members);
}

static sp_status write_members(const char *path, const sp_zip_member *members, uint32_t count)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__zip_save(members, count, &bytes, &len));
    const sp_status status = sp_file_replace(path, bytes, len);
    sp_free(bytes);
    return status;
}

sp_status sp_npz_write(const char *path, const char *const *names, const sp_tensor *tensors,
                       uint32_t count)
{
    SP_TRY(sp__runtime_enter());
    if (path == NULL || (count > 0 && (names == NULL || tensors == NULL))) {
        return sp__fail(SP_INVALID, "sp_npz_write: path, names or tensors is NULL");
    }
    SP_TRY(check_names(names, count));
    sp_zip_member *members = sp_calloc(count + 1, sizeof *members);
    if (members == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for %u arrays", count);
    sp_status status = SP_OK;
    uint32_t made = 0;
    while (made < count && status == SP_OK) {
        status = make_member(names[made], tensors[made], &members[made]);
        if (status == SP_OK) made++;
    }
    if (status == SP_OK) status = write_members(path, members, count);
    free_members(members, made);
    return status;
}
