/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of deflate (RFC 1951), as used by zip archives and by the text of GPU kernels.
 * Decision 0018 says why the library has its own implementation. */
#ifndef SP_BASE_INFLATE_H
#define SP_BASE_INFLATE_H

#include <stddef.h>

#include <streampool/status.h>

/* The largest factor by which a deflate stream can grow. */
#define SP_INFLATE_MOST 1032

/* Decompresses `in`, which must be one whole stream and give exactly `out_len` bytes. Each step
 * consumes a bit of the input or gives a byte of the output, so time is bounded by the two
 * sizes. */
sp_status sp__inflate(const void *in, size_t in_len, void *out, size_t out_len);

#endif
