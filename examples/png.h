/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures as uncompressed PNG. */
#ifndef DEMO_PNG_H
#define DEMO_PNG_H

#include "picture.h"

/* Prints errors to stderr. */
bool png_write(const char *path, const rgb_picture *picture);

#endif
