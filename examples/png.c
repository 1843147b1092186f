/* SPDX-License-Identifier: Apache-2.0 */
/* A PNG is a signature and chunks, each with a CRC-32; the pixels are a zlib stream (RFC 1950),
 * whose deflate blocks (RFC 1951) may be stored instead of compressed. */
#include "png.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 65535u /* the maximum of a stored block */

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) *at++ = (uint8_t)(value >> shift);
    return at;
}

static uint32_t crc32(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xedb88320u : 0u);
    }
    return ~crc;
}

static uint32_t adler32(const uint8_t *bytes, size_t len)
{
    uint32_t low = 1;
    uint32_t high = 0;
    for (size_t i = 0; i < len; i++) {
        low = (low + bytes[i]) % 65521u;
        high = (high + low) % 65521u;
    }
    return high << 16 | low;
}

/* `chunk` is the type followed by the data. */
static bool write_chunk(FILE *file, const uint8_t *chunk, size_t len)
{
    uint8_t before[4];
    uint8_t after[4];
    put_u32(before, (uint32_t)(len - 4)); /* the type is not counted */
    put_u32(after, crc32(chunk, len));
    return fwrite(before, 1, 4, file) == 4 && fwrite(chunk, 1, len, file) == len &&
           fwrite(after, 1, 4, file) == 4;
}

static bool write_header(FILE *file, const rgb_picture *picture)
{
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t chunk[17] = "IHDR";
    uint8_t *at = put_u32(chunk + 4, (uint32_t)picture->width);
    at = put_u32(at, (uint32_t)picture->height);
    at[0] = 8; /* bits per sample */
    at[1] = 2; /* red, green, blue */
    return fwrite(signature, 1, sizeof signature, file) == sizeof signature &&
           write_chunk(file, chunk, sizeof chunk);
}

/* Writes `rows` as a zlib stream of stored blocks; returns its end. */
static uint8_t *put_stored(uint8_t *at, const uint8_t *rows, size_t len)
{
    *at++ = 0x78; /* deflate, window of 32 KiB */
    *at++ = 0x01;
    for (size_t done = 0; done < len;) {
        const size_t block = len - done < BLOCK_BYTES ? len - done : BLOCK_BYTES;
        *at++ = done + block == len; /* the last one? */
        *at++ = (uint8_t)block;
        *at++ = (uint8_t)(block >> 8);
        *at++ = (uint8_t)~block;
        *at++ = (uint8_t)(~block >> 8);
        memcpy(at, rows + done, block);
        at += block;
        done += block;
    }
    return put_u32(at, adler32(rows, len));
}

static bool write_pixels(FILE *file, const rgb_picture *picture)
{
    static const uint8_t type[4] = {'I', 'D', 'A', 'T'};
    const size_t row_bytes = (size_t)picture->width * 3;
    const size_t height = (size_t)picture->height;
    const size_t len = (1 + row_bytes) * height;
    uint8_t *rows = calloc(1, len);
    uint8_t *chunk = malloc(4 + 2 + len + 5 * (len / BLOCK_BYTES + 1) + 4);
    bool is_written = false;
    if (rows != NULL && chunk != NULL) {
        for (size_t y = 0; y < height; y++) { /* a row begins with its filter: 0, none */
            memcpy(rows + y * (1 + row_bytes) + 1, picture->pixels + y * row_bytes, row_bytes);
        }
        memcpy(chunk, type, sizeof type);
        const uint8_t *end = put_stored(chunk + 4, rows, len);
        is_written = write_chunk(file, chunk, (size_t)(end - chunk));
    }
    free(chunk);
    free(rows);
    return is_written;
}

bool png_write(const char *path, const rgb_picture *picture)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    bool is_written = write_header(file, picture) && write_pixels(file, picture) &&
                      write_chunk(file, (const uint8_t *)"IEND", 4);
    is_written = fclose(file) == 0 && is_written;
    if (!is_written) fprintf(stderr, "%s: could not write\n", path);
    return is_written;
}
