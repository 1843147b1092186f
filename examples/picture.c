/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and drawing; see png.c for writing. */
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool picture_init(rgb_picture *out, int width, int height)
{
    *out = (rgb_picture){.width = width, .height = height};
    out->pixels = calloc((size_t)width * (size_t)height, 3);
    if (out->pixels == NULL) fprintf(stderr, "no memory for a picture\n");
    return out->pixels != NULL;
}

void picture_deinit(rgb_picture *picture)
{
    free(picture->pixels);
    picture->pixels = NULL;
}

uint8_t *picture_pixel(const rgb_picture *picture, int x, int y)
{
    return picture->pixels + ((size_t)y * (size_t)picture->width + (size_t)x) * 3;
}

static void pixel_put(rgb_picture *picture, int x, int y, rgb_colour colour)
{
    if (x < 0 || y < 0 || x >= picture->width || y >= picture->height) return;
    uint8_t *pixel = picture_pixel(picture, x, y);
    pixel[0] = colour.red;
    pixel[1] = colour.green;
    pixel[2] = colour.blue;
}

/* ---- reading ---- */

static bool read_ppm(FILE *file, rgb_picture *picture)
{
    int width;
    int height;
    int levels;
    if (fscanf(file, "P6 %5d %5d %5d", &width, &height, &levels) != 3) return false;
    if (width != picture->width || height != picture->height || levels != 255) return false;
    if (fgetc(file) != '\n') return false;
    const size_t bytes = (size_t)width * (size_t)height * 3;
    return fread(picture->pixels, 1, bytes, file) == bytes;
}

bool picture_read_ppm(const char *path, int width, int height, rgb_picture *out)
{
    if (!picture_init(out, width, height)) return false;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        picture_deinit(out);
        return false;
    }
    const bool is_read = read_ppm(file, out);
    fclose(file);
    if (is_read) return true;
    fprintf(stderr, "%s: not a binary PPM picture of %d x %d pixels\n", path, width, height);
    picture_deinit(out);
    return false;
}

/* ---- drawing ---- */

bool picture_enlarge(const rgb_picture *from, int factor, rgb_picture *out)
{
    if (!picture_init(out, from->width * factor, from->height * factor)) return false;
    for (int y = 0; y < out->height; y++) {
        for (int x = 0; x < out->width; x++) {
            memcpy(picture_pixel(out, x, y), picture_pixel(from, x / factor, y / factor), 3);
        }
    }
    return true;
}

void picture_draw_box(rgb_picture *picture, int left, int top, int right, int bottom, int thickness,
                      rgb_colour colour)
{
    for (int i = 0; i < thickness; i++) {
        for (int x = left; x <= right; x++) {
            pixel_put(picture, x, top + i, colour);
            pixel_put(picture, x, bottom - i, colour);
        }
        for (int y = top; y <= bottom; y++) {
            pixel_put(picture, left + i, y, colour);
            pixel_put(picture, right - i, y, colour);
        }
    }
}

void picture_draw_dot(rgb_picture *picture, int x, int y, int radius, rgb_colour colour)
{
    for (int dy = -radius; dy <= radius; dy++) {
        for (int dx = -radius; dx <= radius; dx++) {
            if (dx * dx + dy * dy <= radius * radius) pixel_put(picture, x + dx, y + dy, colour);
        }
    }
}
