/* SPDX-License-Identifier: Apache-2.0 */
/* Deflate: blocks that are stored, or coded by two Huffman codes: of literals and lengths, and of
 * distances. Codes are canonical, so a code is given by the number of codes of each length and the
 * symbols in order of their codes; decoding reads one bit at a time. */
#include "base/inflate.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"

enum {
    MAX_BITS = 15, /* of a code */
    LENGTHS = 288, /* literals, the end of a block (256), and lengths */
    DISTANCES = 30,
    END_OF_BLOCK = 256
};

typedef struct stream {
    const uint8_t *in;
    size_t in_len, in_at;
    uint32_t bits; /* read but not consumed, the next one lowest */
    uint32_t bit_count;
    uint8_t *out;
    size_t out_len, out_at;
    bool is_short; /* the input has ended: bits read since then are zero */
} stream;

typedef struct huffman {
    uint16_t count[MAX_BITS + 1]; /* of codes of each length */
    uint16_t symbols[LENGTHS];
} huffman;

static sp_status fail_corrupt(const char *what)
{
    return sp__fail(SP_CORRUPT, "malformed compressed data: %s", what);
}

/* At most 16 bits. */
static uint32_t bits_take(stream *s, uint32_t count)
{
    while (s->bit_count < count) {
        const bool has_more = s->in_at < s->in_len;
        if (!has_more) s->is_short = true;
        s->bits |= (has_more ? (uint32_t)s->in[s->in_at++] : 0) << s->bit_count;
        s->bit_count += 8;
    }
    const uint32_t value = s->bits & ((1u << count) - 1);
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

/* False if the lengths need more codes than exist. A code may be incomplete: then some bits have no
 * symbol. */
static bool huffman_make(huffman *h, const uint8_t *lengths, uint32_t count)
{
    memset(h->count, 0, sizeof h->count);
    for (uint32_t i = 0; i < count; i++) h->count[lengths[i]]++;
    int32_t left = 1;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        left = 2 * left - h->count[bits];
        if (left < 0) return false;
    }
    uint16_t next[MAX_BITS + 2] = {0};
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        next[bits + 1] = (uint16_t)(next[bits] + h->count[bits]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (lengths[i] != 0) h->symbols[next[lengths[i]]++] = (uint16_t)i;
    }
    return true;
}

/* The next symbol, or -1. */
static int32_t symbol_decode(stream *s, const huffman *h)
{
    int32_t code = 0, first = 0, index = 0;
    for (uint32_t bits = 1; bits <= MAX_BITS; bits++) {
        code |= (int32_t)bits_take(s, 1);
        const int32_t count = h->count[bits];
        if (code - first < count) return h->symbols[index + code - first];
        index += count;
        first = (first + count) << 1;
        code <<= 1;
    }
    return -1;
}

static sp_status copy_stored(stream *s)
{
    s->bits = 0; /* the rest of the byte is skipped; no whole byte is ever buffered here */
    s->bit_count = 0;
    if (s->in_len - s->in_at < 4) return fail_corrupt("the data ends inside a stored block");
    const uint8_t *head = s->in + s->in_at;
    const size_t len = head[0] | (size_t)head[1] << 8;
    const size_t check = head[2] | (size_t)head[3] << 8;
    s->in_at += 4;
    if ((len ^ check) != 0xffff) return fail_corrupt("a stored block with a wrong length");
    if (len > s->in_len - s->in_at) return fail_corrupt("the data ends inside a stored block");
    if (len > s->out_len - s->out_at) return fail_corrupt("more bytes than expected");
    memcpy(s->out + s->out_at, s->in + s->in_at, len);
    s->in_at += len;
    s->out_at += len;
    return SP_OK;
}

static sp_status copy_match(stream *s, uint32_t symbol, const huffman *distances)
{
    static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                           15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                           67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distance_bits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                            6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    symbol -= END_OF_BLOCK + 1;
    if (symbol >= SP_COUNT_OF(length_base)) return fail_corrupt("an undefined length");
    const size_t len = length_base[symbol] + bits_take(s, length_bits[symbol]);
    const int32_t code = symbol_decode(s, distances);
    if (code < 0 || code >= DISTANCES) return fail_corrupt("an undefined distance");
    const size_t distance = distance_base[code] + bits_take(s, distance_bits[code]);
    if (distance > s->out_at) return fail_corrupt("a distance to before the beginning");
    if (len > s->out_len - s->out_at) return fail_corrupt("more bytes than expected");
    for (size_t i = 0; i < len; i++) { /* the ranges may overlap: then bytes repeat */
        s->out[s->out_at] = s->out[s->out_at - distance];
        s->out_at++;
    }
    return SP_OK;
}

static sp_status read_block(stream *s, const huffman *lengths, const huffman *distances)
{
    for (;;) {
        const int32_t symbol = symbol_decode(s, lengths);
        if (s->is_short) return fail_corrupt("the data ends too early");
        if (symbol < 0) return fail_corrupt("an undefined code");
        if (symbol == END_OF_BLOCK) return SP_OK;
        if (symbol > END_OF_BLOCK) {
            SP_TRY(copy_match(s, (uint32_t)symbol, distances));
        } else {
            if (s->out_at == s->out_len) return fail_corrupt("more bytes than expected");
            s->out[s->out_at++] = (uint8_t)symbol;
        }
    }
}

static sp_status read_fixed(stream *s)
{
    uint8_t lengths[LENGTHS];
    huffman codes, distances;
    for (uint32_t i = 0; i < LENGTHS; i++) lengths[i] = i < 144 || i >= 280 ? 8 : i < 256 ? 9 : 7;
    (void)huffman_make(&codes, lengths, LENGTHS);
    memset(lengths, 5, DISTANCES);
    (void)huffman_make(&distances, lengths, DISTANCES);
    return read_block(s, &codes, &distances);
}

/* The lengths of both codes in one list, themselves coded: 16 repeats the last one, 17 and 18 give
 * zeroes. */
static sp_status read_lengths(stream *s, const huffman *codes, uint8_t *lengths, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        const int32_t symbol = symbol_decode(s, codes);
        if (s->is_short) return fail_corrupt("the data ends too early");
        if (symbol < 0) return fail_corrupt("an undefined code");
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0) return fail_corrupt("a repeat of no length");
        const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
        uint32_t times = symbol == 16   ? 3 + bits_take(s, 2)
                         : symbol == 17 ? 3 + bits_take(s, 3)
                                        : 11 + bits_take(s, 7);
        if (times > count - i) return fail_corrupt("more codes than expected");
        for (; times > 0; times--) lengths[i++] = value;
    }
    return SP_OK;
}

static sp_status read_dynamic(stream *s)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    const uint32_t length_count = bits_take(s, 5) + 257, distance_count = bits_take(s, 5) + 1;
    const uint32_t code_count = bits_take(s, 4) + 4;
    if (length_count > 286 || distance_count > DISTANCES) return fail_corrupt("too many codes");
    uint8_t lengths[LENGTHS + DISTANCES] = {0};
    huffman codes, distances;
    for (uint32_t i = 0; i < code_count; i++) lengths[order[i]] = (uint8_t)bits_take(s, 3);
    if (!huffman_make(&codes, lengths, 19)) return fail_corrupt("inconsistent code lengths");
    SP_TRY(read_lengths(s, &codes, lengths, length_count + distance_count));
    if (lengths[END_OF_BLOCK] == 0) return fail_corrupt("a block without an end");
    if (!huffman_make(&codes, lengths, length_count) ||
        !huffman_make(&distances, lengths + length_count, distance_count)) {
        return fail_corrupt("inconsistent code lengths");
    }
    return read_block(s, &codes, &distances);
}

sp_status sp__inflate(const void *in, size_t in_len, void *out, size_t out_len)
{
    stream s = {.in = in, .in_len = in_len, .out = out, .out_len = out_len};
    for (bool is_last = false; !is_last;) {
        is_last = bits_take(&s, 1) != 0;
        const uint32_t type = bits_take(&s, 2);
        if (s.is_short) return fail_corrupt("the data ends too early");
        if (type == 3) return fail_corrupt("an undefined type of block");
        SP_TRY(type == 0 ? copy_stored(&s) : type == 1 ? read_fixed(&s) : read_dynamic(&s));
        if (s.is_short) return fail_corrupt("the data ends too early");
    }
    if (s.out_at != out_len) return fail_corrupt("fewer bytes than expected");
    return s.in_at == in_len ? SP_OK : fail_corrupt("bytes after the end");
}
