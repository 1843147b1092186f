/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of what is between convolutions: images [images, channels, height, width]. */
#ifndef SP_TESTS_SUPPORT_IMAGE_GRAPH_H
#define SP_TESTS_SUPPORT_IMAGE_GRAPH_H

#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { IMAGE_VALUES = 24 };

/* A value of shape [images, channels, height, width]. */
typedef struct image {
    char name[16];
    int64_t channels, height, width;
} image;

typedef struct image_graph {
    data_random random;
    writer graph;
    image values[IMAGE_VALUES];
    int count, weights, hidden; /* hidden: values that are no images */
    int64_t images;
    bool has_specials; /* infinities and NaNs among the numbers */
} image_graph;

/* A random graph of a seed, loaded; x: the shape of its input. The caller destroys it. */
const sp_graph *image_graph_make(image_graph *g, uint64_t seed, sp_shape *x);

/* The nodes written so far, loaded. */
const sp_graph *image_graph_load(image_graph *g);

/* A weight of that shape; `is_positive` for variances. */
void image_graph_add_weight(image_graph *g, const int64_t *dims, uint32_t rank, bool is_positive,
                            char name[16]);

/* Some infinities, NaNs and denormals, if the graph has them. */
void image_graph_add_specials(image_graph *g, float *values, size_t count);

#endif
