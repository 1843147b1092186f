/* SPDX-License-Identifier: Apache-2.0 */
/* Decompression of deflate (RFC 1951), as zip archives hold it. Decision 0018 says why it is ours.
 */
#ifndef SP_IO_INFLATE_H
#define SP_IO_INFLATE_H

#include <stddef.h>

#include <streampool/status.h>

/* No stream of deflate grows by more than this factor. */
#define SP_INFLATE_MOST 1032

/* Decompresses `in`, which must be one whole stream and give exactly `out_len` bytes. Each step
 * takes a bit of the input or gives a byte of the output, so time is bounded by the two sizes. */
sp_status sp__inflate(const void *in, size_t in_len, void *out, size_t out_len);

#endif
