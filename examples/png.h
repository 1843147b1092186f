/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures as PNG, uncompressed, so that any viewer shows them. */
#ifndef DEMO_PNG_H
#define DEMO_PNG_H

#include "picture.h"

/* Says on stderr what went wrong. */
bool png_write(const char *path, const rgb_picture *picture);

#endif
