/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of 8-bit red, green and blue, row by row from the top: reading, drawing, enlarging. */
#ifndef DEMO_PICTURE_H
#define DEMO_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rgb_picture {
    int width;
    int height;
    uint8_t *pixels; /* width * height * 3 bytes */
} rgb_picture;

typedef struct rgb_colour {
    uint8_t red;
    uint8_t green;
    uint8_t blue;
} rgb_colour;

/* Creates a black picture. False if memory runs out. */
bool picture_init(rgb_picture *out, int width, int height);

/* Accepts a zeroed picture. */
void picture_deinit(rgb_picture *picture);

/* The red byte of a pixel inside the picture; green and blue follow. */
uint8_t *picture_pixel(const rgb_picture *picture, int x, int y);

/* Reads a binary PPM (P6, 255 levels, no comments) of this size. Prints errors to stderr. */
bool picture_read_ppm(const char *path, int width, int height, rgb_picture *out);

/* Copies the picture with each pixel as factor x factor pixels. */
bool picture_enlarge(const rgb_picture *from, int factor, rgb_picture *out);

/* The outline of a box, `thickness` pixels wide, drawn inwards and clipped to the picture. */
void picture_draw_box(rgb_picture *picture, int left, int top, int right, int bottom, int thickness,
                      rgb_colour colour);

/* A filled circle. */
void picture_draw_dot(rgb_picture *picture, int x, int y, int radius, rgb_colour colour);

#endif
