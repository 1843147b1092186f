/* SPDX-License-Identifier: Apache-2.0 */
/* A WAV file is a header and chunks, each with a name and a size. "fmt " is before "data"; others
 * are skipped by reading, so that a pipe can be read too. Numbers are little-endian. */
#include "wav.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_BYTES 16
#define FORMAT_PCM 1

typedef struct wav_file {
    FILE *file;
    const char *path;
} wav_file;

static uint32_t little_u16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t little_u32(const uint8_t *bytes)
{
    return little_u16(bytes) | little_u16(bytes + 2) << 16;
}

static bool file_fail(const wav_file *in, const char *what)
{
    fprintf(stderr, "%s: %s\n", in->path, what);
    return false;
}

static bool bytes_read(const wav_file *in, void *out, size_t len)
{
    if (fread(out, 1, len, in->file) == len) return true;
    return file_fail(in, ferror(in->file) ? "cannot be read" : "not a whole WAV file");
}

static bool bytes_skip(const wav_file *in, uint64_t len)
{
    uint8_t scratch[4096];
    while (len > 0) {
        const size_t part = len < sizeof scratch ? (size_t)len : sizeof scratch;
        if (!bytes_read(in, scratch, part)) return false;
        len -= part;
    }
    return true;
}

static bool format_check(const wav_file *in, uint32_t chunk_bytes)
{
    uint8_t format[FORMAT_BYTES];
    if (chunk_bytes < FORMAT_BYTES) return file_fail(in, "its format chunk is too short");
    if (!bytes_read(in, format, FORMAT_BYTES)) return false;
    const uint32_t kind = little_u16(format);
    const uint32_t channels = little_u16(format + 2);
    const uint32_t rate = little_u32(format + 4);
    const uint32_t bits = little_u16(format + 14);
    if (kind != FORMAT_PCM || channels != 1 || rate != WAV_RATE || bits != 16) {
        fprintf(stderr,
                "%s: has format %u, channels %u, rate %u, bits %u; must have format 1 (PCM), "
                "channels 1, rate %d, bits 16\n",
                in->path, kind, channels, rate, bits, WAV_RATE);
        return false;
    }
    return bytes_skip(in, (uint64_t)chunk_bytes - FORMAT_BYTES + chunk_bytes % 2);
}

static bool samples_read(const wav_file *in, uint32_t chunk_bytes, wav_sound *out)
{
    const size_t count = chunk_bytes / 2;
    if (count == 0 || count > (size_t)WAV_MAX_SECONDS * WAV_RATE) {
        fprintf(stderr, "%s: %.1f seconds long; must have samples, and at most %d seconds\n",
                in->path, (double)count / WAV_RATE, WAV_MAX_SECONDS);
        return false;
    }
    out->count = count;
    out->samples = malloc(count * sizeof *out->samples);
    if (out->samples == NULL) return file_fail(in, "no memory for its samples");
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[2];
        if (!bytes_read(in, bytes, sizeof bytes)) return false;
        const int value = (int)little_u16(bytes);
        out->samples[i] = (float)(value < 32768 ? value : value - 65536) / 32768.0f;
    }
    return true;
}

static bool sound_read(const wav_file *in, wav_sound *out)
{
    uint8_t head[12];
    if (!bytes_read(in, head, sizeof head)) return false;
    if (memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0) {
        return file_fail(in, "not a WAV file");
    }
    bool has_format = false;
    for (;;) {
        uint8_t chunk[8];
        if (!bytes_read(in, chunk, sizeof chunk)) return false;
        const uint32_t len = little_u32(chunk + 4);
        if (memcmp(chunk, "data", 4) == 0) {
            if (!has_format) return file_fail(in, "has no format chunk before its samples");
            return samples_read(in, len, out);
        }
        if (memcmp(chunk, "fmt ", 4) == 0) {
            has_format = format_check(in, len);
            if (!has_format) return false;
        } else if (!bytes_skip(in, (uint64_t)len + len % 2)) {
            return false;
        }
    }
}

bool wav_read(const char *path, wav_sound *out)
{
    *out = (wav_sound){0};
    const wav_file in = {.file = fopen(path, "rb"), .path = path};
    if (in.file == NULL) {
        perror(path);
        return false;
    }
    const bool is_read = sound_read(&in, out);
    fclose(in.file);
    if (!is_read) wav_deinit(out);
    return is_read;
}

void wav_deinit(wav_sound *sound)
{
    free(sound->samples);
    *sound = (wav_sound){0};
}
