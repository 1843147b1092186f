/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing .npy. The header is parsed as NumPy writes it: a dictionary of three keys, in
 * any order, with spaces anywhere. */
#include "io/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/text.h"
#include "tensor/strided_copy.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of this machine say '<'");

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* NumPy's kind and the size, as in '<f4'. */
static const struct {
    char kind;
    sp_dtype dtype;
} kinds[] = {{'f', SP_F16}, {'f', SP_F32}, {'f', SP_F64}, {'i', SP_I8},
             {'i', SP_I16}, {'i', SP_I32}, {'i', SP_I64}, {'u', SP_U8},
             {'u', SP_U16}, {'u', SP_U32}, {'u', SP_U64}, {'b', SP_BOOL}};

typedef struct npy_head {
    sp_dtype dtype;
    bool is_swapped;
    bool is_fortran;
    sp_shape shape;
    uint32_t seen; /* of the keys, one bit each */
} npy_head;

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4, SEEN_ALL = 7 };

/* ---- reading the header ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static sp_status npy_malformed(const char *what)
{
    return sp__fail(SP_CORRUPT, "malformed .npy file: %s", what);
}

static void skip_spaces(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n')) c->at++;
}

/* The next character after spaces, if it is `wanted`. */
static bool take_char(cursor *c, char wanted)
{
    skip_spaces(c);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t len = strlen(word);
    skip_spaces(c);
    if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0) return false;
    c->at += len;
    return true;
}

static bool take_string(cursor *c, sp_text *out)
{
    skip_spaces(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    const char quote = *c->at++;
    const char *end = memchr(c->at, quote, (size_t)(c->end - c->at));
    if (end == NULL) return false;
    *out = (sp_text){c->at, (size_t)(end - c->at)};
    c->at = end + 1;
    return true;
}

static bool take_size(cursor *c, int64_t *out)
{
    skip_spaces(c);
    const char *first = c->at;
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, *c->at - '0', &value)) return false;
    }
    *out = value;
    const bool is_number = c->at > first;
    (void)take_char(c, 'L'); /* of Python 2 */
    return is_number;
}

static sp_status read_descr(cursor *c, npy_head *out)
{
    sp_text text;
    if (!take_string(c, &text)) {
        return sp__fail(SP_UNSUPPORTED, "an array of structs is not supported: use plain elements");
    }
    const char order = text.len > 0 ? text.ptr[0] : '\0';
    const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
    const sp_text rest = {text.ptr + has_order, text.len - has_order};
    for (size_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        const size_t bytes = sp_dtype_bytes(kinds[i].dtype);
        if (rest.len != 2 || rest.ptr[0] != kinds[i].kind || rest.ptr[1] != (char)('0' + bytes)) {
            continue;
        }
        out->dtype = kinds[i].dtype;
        out->is_swapped = order == '>' && bytes > 1;
        return SP_OK;
    }
    return sp__fail(SP_UNSUPPORTED, "elements of NumPy's type '%s' are not supported",
                    sp__text_print(text).text);
}

static sp_status read_order(cursor *c, npy_head *out)
{
    out->is_fortran = take_word(c, "True");
    if (out->is_fortran || take_word(c, "False")) return SP_OK;
    return npy_malformed("fortran_order is neither True nor False");
}

static sp_status read_shape(cursor *c, npy_head *out)
{
    int64_t dims[SP_MAX_RANK];
    uint32_t rank = 0;
    if (!take_char(c, '(')) return npy_malformed("the shape is not a tuple");
    while (!take_char(c, ')')) {
        if (rank == SP_MAX_RANK) {
            return sp__fail(SP_UNSUPPORTED, "an array of more than %d dimensions is not supported",
                            SP_MAX_RANK);
        }
        if (!take_size(c, &dims[rank])) return npy_malformed("a size in the shape is not a number");
        rank++;
        const bool has_comma = take_char(c, ',');
        skip_spaces(c);
        const bool is_end = c->at < c->end && *c->at == ')';
        if (!has_comma && (!is_end || rank == 1)) return npy_malformed("the shape is not a tuple");
    }
    return sp__shape_make(dims, rank, &out->shape);
}

static sp_status read_item(cursor *c, npy_head *out)
{
    static const struct {
        const char *name;
        uint32_t seen;
        sp_status (*read)(cursor *c, npy_head *out);
    } keys[] = {{"descr", SEEN_DESCR, read_descr},
                {"fortran_order", SEEN_ORDER, read_order},
                {"shape", SEEN_SHAPE, read_shape}};
    sp_text key;
    if (!take_string(c, &key) || !take_char(c, ':'))
        return npy_malformed("the header is not a dictionary");
    for (size_t i = 0; i < SP_COUNT_OF(keys); i++) {
        if (!sp__text_is(key, keys[i].name)) continue;
        if ((out->seen & keys[i].seen) != 0)
            return npy_malformed("a key of the header is repeated");
        out->seen |= keys[i].seen;
        return keys[i].read(c, out);
    }
    return npy_malformed("a key of the header is unknown");
}

static sp_status read_dictionary(cursor c, npy_head *out)
{
    *out = (npy_head){.seen = 0};
    if (!take_char(&c, '{')) return npy_malformed("the header is not a dictionary");
    while (!take_char(&c, '}')) {
        SP_TRY(read_item(&c, out));
        if (take_char(&c, ',')) continue;
        if (!take_char(&c, '}')) return npy_malformed("the header is not a dictionary");
        break;
    }
    skip_spaces(&c);
    if (c.at != c.end) return npy_malformed("the header has text after its dictionary");
    return out->seen == SEEN_ALL ? SP_OK : npy_malformed("a key is missing in the header");
}

/* Finds the header's text, and with it the start of the elements. */
static sp_status find_header(const char *bytes, size_t len, cursor *header)
{
    if (len < 10 || memcmp(bytes, magic, sizeof magic) != 0) {
        return sp__fail(SP_CORRUPT, "this is not a .npy file");
    }
    const uint8_t major = (uint8_t)bytes[6], minor = (uint8_t)bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return sp__fail(SP_UNSUPPORTED, "version %u.%u of .npy; 1.0, 2.0 and 3.0 are supported",
                        major, minor);
    }
    const size_t width = major == 1 ? 2 : 4;
    if (len < 8 + width) return npy_malformed("the file ends inside its header");
    uint32_t header_len = 0;
    memcpy(&header_len, bytes + 8, width);
    const size_t begin = 8 + width;
    if (header_len > len - begin) return npy_malformed("the file ends inside its header");
    *header = (cursor){bytes + begin, bytes + begin + header_len};
    return SP_OK;
}

/* ---- reading the elements ---- */

static void swap_bytes(unsigned char *data, uint64_t len, size_t element)
{
    for (uint64_t at = 0; at < len; at += element) {
        for (size_t i = 0; i < element / 2; i++) {
            const unsigned char kept = data[at + i];
            data[at + i] = data[at + element - 1 - i];
            data[at + element - 1 - i] = kept;
        }
    }
}

/* To C order: an array in Fortran order is the reversed array in C order, transposed. */
static sp_status copy_elements(const npy_head *head, const char *from, sp_array *to)
{
    const uint32_t rank = head->shape.rank;
    sp_shape reversed = {.rank = rank};
    int64_t axes[SP_MAX_RANK];
    sp_layout file, array;
    sp_strided_copy copy;
    for (uint32_t i = 0; i < rank; i++) {
        axes[i] = head->is_fortran ? rank - 1 - i : i;
        reversed.dims[i] = head->shape.dims[axes[i]];
    }
    SP_TRY(sp__layout_init_contiguous(&file, head->dtype, &reversed));
    SP_TRY(sp__layout_permute(&file, axes, rank, &file));
    SP_TRY(sp__layout_init_contiguous(&array, head->dtype, &head->shape));
    sp__strided_copy_plan(&array, &file, &copy);
    sp__strided_copy_on_host(&copy, to->data, from);
    if (head->is_swapped) swap_bytes(to->data, to->bytes, sp_dtype_bytes(head->dtype));
    if (head->dtype != SP_BOOL) return SP_OK;
    unsigned char *bools = to->data; /* replaces values other than 0 and 1 */
    for (uint64_t i = 0; i < to->bytes; i++) bools[i] = bools[i] != 0;
    return SP_OK;
}

sp_status sp__npy_load(const void *bytes, size_t len, sp_array *out)
{
    *out = (sp_array){0};
    cursor header;
    npy_head head;
    uint64_t wanted;
    SP_TRY(find_header(bytes, len, &header));
    SP_TRY(read_dictionary(header, &head));
    SP_TRY(sp__shape_bytes(&head.shape, head.dtype, &wanted));
    const size_t found = len - (size_t)(header.end - (const char *)bytes);
    if (found != wanted) {
        return sp__fail(
            SP_CORRUPT,
            "malformed .npy file: %zu bytes of elements, wanted %" PRIu64 " for shape %s of %s",
            found, wanted, sp__shape_print(&head.shape).text, sp_dtype_name(head.dtype));
    }
    SP_TRY(sp__array_init(out, head.dtype, &head.shape));
    const sp_status status = copy_elements(&head, header.end, out);
    if (status != SP_OK) sp__array_deinit(out);
    return status;
}

/* ---- writing ---- */

/* The shape as a tuple of Python: (), (3,), (3, 4). */
static size_t print_shape(const sp_shape *shape, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "(");
    for (uint32_t i = 0; i < shape->rank; i++) {
        const char *after = i + 1 < shape->rank ? ", " : shape->rank == 1 ? "," : "";
        used += (size_t)snprintf(out + used, room - used, "%" PRId64 "%s", shape->dims[i], after);
    }
    return used + (size_t)snprintf(out + used, room - used, ")");
}

sp_status sp__npy_save(const sp_array_view *array, void **bytes, size_t *len)
{
    enum { ROOM = 384, ALIGNMENT = 64, FIXED = 10 }; /* 8 sizes of 19 digits fit */
    char kind = '\0';
    for (size_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        if (kinds[i].dtype == array->dtype) kind = kinds[i].kind;
    }
    if (kind == '\0') {
        return sp__fail(SP_UNSUPPORTED, "NumPy has no %s: view it as another type (u16)",
                        sp_dtype_name(array->dtype));
    }
    uint64_t data_bytes;
    SP_TRY(sp__shape_bytes(&array->shape, array->dtype, &data_bytes));
    const size_t element = sp_dtype_bytes(array->dtype);
    char text[ROOM];
    size_t used = (size_t)snprintf(text, ROOM,
                                   "{'descr': '%c%c%zu', 'fortran_order': False, "
                                   "'shape': ",
                                   element == 1 ? '|' : '<', kind, element);
    used += print_shape(&array->shape, text + used, ROOM - used);
    used += (size_t)snprintf(text + used, ROOM - used, ", }");
    /* The elements begin at a multiple of 64; the header ends in a new line. */
    const size_t total = (FIXED + used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(text + used, ' ', total - FIXED - used);
    text[total - FIXED - 1] = '\n';
    char *file = sp_malloc(total + (size_t)data_bytes);
    if (file == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a .npy file of %zu bytes",
                        total + (size_t)data_bytes);
    }
    const uint16_t header_len = (uint16_t)(total - FIXED);
    memcpy(file, magic, sizeof magic);
    file[6] = 1; /* version 1.0 */
    file[7] = 0;
    memcpy(file + 8, &header_len, 2);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a header, not a string */
    memcpy(file + FIXED, text, total - FIXED);
    if (data_bytes > 0) memcpy(file + total, array->data, (size_t)data_bytes);
    *bytes = file;
    *len = total + (size_t)data_bytes;
    return SP_OK;
}
