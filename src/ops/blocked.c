/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/blocked.h"

#include "base/macros.h"
#include "base/size.h"
#include "ops/activation.h"
#include "ops/cpu/tiling.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"

/* Kernels count images, channels and pixels by 32 bits each. */
static bool is_counted(int64_t images, int64_t channels, int64_t pixels)
{
    return images < UINT32_MAX && channels < UINT32_MAX && pixels < UINT32_MAX;
}

static bool is_form_counted(const sp_image_form *form)
{
    return is_counted(form->images, sp__image_form_blocks(form), form->pixels);
}

/* The images of the call, whose forms are set; false if it is too large. */
static bool set_images(sp_blocked_call *call)
{
    call->constants.images = call->x.images;
    return is_form_counted(&call->x) && is_form_counted(&call->y);
}

/* At most a quarter of the lanes compute filters that there are not; a third if the images are
 * blocked anyway. */
static bool fills_blocks(int64_t channels, bool is_group)
{
    const int64_t lanes = sp__channel_blocks(channels) * SP_CHANNEL_BLOCK;
    return channels > 0 && (is_group ? lanes * 2 <= channels * 3 : lanes * 3 <= channels * 4);
}

/* Does the input of one output, of `planes` planes of `step` floats a column, fit in `most` floats?
 * (patch.h) Images without pixels, of which padding makes outputs, have none that fits. */
static bool patch_fits_in(const sp_conv_constants *k, int64_t planes, int64_t step, int64_t most)
{
    const int64_t rows = (k->kernel_h - 1) * k->dilation_h + 1;
    const int64_t parts = k->kernel_w == 1 ? 1 : k->stride_w;
    const int64_t columns = parts * (1 + (k->kernel_w - 1) * k->dilation_w / parts);
    if (k->in_h * k->in_w == 0 || rows > most || columns > most) return false;
    return rows * columns * planes * step <= most;
}

static bool patch_fits(const sp_conv_constants *k, int64_t planes, int64_t step)
{
    return patch_fits_in(k, planes, step, SP_PATCH_ELEMENTS);
}

/* Of a segment of channels. */
static bool conv_patch_fits(const sp_blocked_constants *conv, int64_t most)
{
    const sp_conv_constants *k = &conv->of;
    const int64_t channels = sp_size_least(k->segment / (k->kernel_h * k->kernel_w), k->channels);
    return conv->is_plain ? patch_fits_in(k, channels, 1, most)
                          : patch_fits_in(k, sp__channel_blocks(channels), SP_CHANNEL_BLOCK, most);
}

/* Of the kernel; 0 if there are too many for a segment. */
static int64_t tap_count(const sp_conv_constants *k)
{
    const int64_t most = SP_CONV_MAX_SEGMENT;
    if (k->kernel_h < 1 || k->kernel_h > most || k->kernel_w < 1 || k->kernel_w > most) return 0;
    return k->kernel_h * k->kernel_w <= most ? k->kernel_h * k->kernel_w : 0;
}

/* Images of one column as images of one row, since kernels compute neighbours of a row together. */
static bool turn_columns(sp_conv_constants *k)
{
    if (k->in_w != 1 || k->out_w != 1 || k->kernel_w != 1 || k->pad_left != 0) return false;
    k->in_w = k->in_h;
    k->out_w = k->out_h;
    k->kernel_w = k->kernel_h;
    k->stride_w = k->stride_h;
    k->dilation_w = k->dilation_h;
    k->pad_left = k->pad_top;
    k->in_h = k->out_h = k->kernel_h = k->stride_h = k->dilation_h = 1;
    k->pad_top = 0;
    return true;
}

/* ---- convolutions ---- */

/* Of filters of so many steps each, one after the other. */
static sp_pack pack_of(sp_kernel_id reader, int64_t depth, int64_t filters)
{
    return (sp_pack){
        .format = sp__pack_format_of(reader),
        .matrix = {.depth = depth, .columns = filters, .depth_stride = 1, .column_stride = depth}};
}

/* Images of so many pixels fill few vectors of a plain layout. */
#define SMALL_PIXELS 64

/* Of more than one block, the last one of up to half its lanes is computed by half: two thirds of
 * the lanes are used. That pays where other kernels have the least speed: for pointwise
 * convolutions, and small images. */
static bool has_half_lanes(const sp_conv_constants *k)
{
    const bool is_slow = k->kernel_h * k->kernel_w == 1 || k->out_h * k->out_w <= SMALL_PIXELS;
    return is_slow && k->groups == 1 && k->filters > SP_CHANNEL_BLOCK;
}

bool sp__blocked_conv(const sp_conv_constants *conv, bool is_x_blocked, sp_blocked_call *out)
{
    *out = (sp_blocked_call){.constants = {.of = *conv}};
    (void)turn_columns(&out->constants.of);
    const sp_conv_constants *k = &out->constants.of;
    const int64_t taps = tap_count(k), block = SP_CHANNEL_BLOCK;
    const bool has_tails = k->channels % block != 0 || k->filters % block != 0;
    if (taps == 0 || k->channels == 0) return false;
    if (!fills_blocks(k->filters, k->groups > 1 && is_x_blocked) && !has_half_lanes(k)) {
        return false;
    }
    if (k->groups > 1 && has_tails && !is_x_blocked) return false;
    if (k->segment % taps != 0) return false;
    out->constants.is_plain = !is_x_blocked && k->channels < block && k->groups == 1;
    const int64_t images = k->planes / (k->groups * k->filters);
    if (!conv_patch_fits(&out->constants, SP_PATCH_ELEMENTS)) return false;
    out->x = (sp_image_form){images, k->groups * k->channels, k->in_h * k->in_w, NULL};
    out->y = (sp_image_form){images, k->groups * k->filters, k->out_h * k->out_w, NULL};
    const int64_t depth = k->channels * taps;
    out->weights = pack_of(SP_KERNEL_ID_conv_blocked_f32, depth, k->groups * k->filters);
    return set_images(out);
}

/* Along one axis. */
static bool reaches_padding(int64_t in, int64_t out, int64_t span, int64_t stride, int64_t pad)
{
    return pad > 0 || (out - 1) * stride - pad + span > in;
}

bool sp__blocked_has_padding(const sp_conv_constants *conv)
{
    const sp_conv_constants *k = conv;
    const int64_t rows = (k->kernel_h - 1) * k->dilation_h + 1;
    const int64_t columns = (k->kernel_w - 1) * k->dilation_w + 1;
    return reaches_padding(k->in_h, k->out_h, rows, k->stride_h, k->pad_top) ||
           reaches_padding(k->in_w, k->out_w, columns, k->stride_w, k->pad_left);
}

/* So many filters read each pixel that the time of a copy does not count. */
#define THIN_FILTERS 32

bool sp__blocked_thin(const sp_conv_constants *conv, const sp_image_form *form,
                      sp_conv_constants *thin, sp_copy_constants *copy)
{
    const sp_conv_constants *k = conv;
    const int64_t planes = form->images * sp__image_form_blocks(form), block = SP_CHANNEL_BLOCK;
    const bool is_pointwise =
        k->kernel_h == 1 && k->kernel_w == 1 && k->pad_top == 0 && k->pad_left == 0;
    if (!is_pointwise || (k->stride_h == 1 && k->stride_w == 1)) return false;
    if (k->groups > 1 || k->filters < THIN_FILTERS) return false;
    if ((k->out_h - 1) * k->stride_h >= k->in_h || (k->out_w - 1) * k->stride_w >= k->in_w) {
        return false; /* padding behind */
    }
    const int64_t row = SP_PLANTED(thin_rows) ? 1 : k->stride_h;
    *thin = *conv;
    thin->in_h = k->out_h;
    thin->in_w = k->out_w;
    thin->stride_h = thin->stride_w = 1;
    *copy = (sp_copy_constants){
        .rank = 4,
        .element_bytes = sizeof(float),
        .count = planes * k->out_h * k->out_w * block,
        .dims = {planes, k->out_h, k->out_w, block},
        .x = {k->in_h * k->in_w * block, row * k->in_w * block, k->stride_w * block, 1},
        .y = {k->out_h * k->out_w * block, k->out_w * block, block, 1}};
    return true;
}

/* Filters that do not fill a block. */
#define FEW_FILTERS 12

bool sp__blocked_rows(const sp_conv_constants *conv, sp_blocked_call *out)
{
    *out = (sp_blocked_call){.constants = {.of = *conv, .is_plain = true}};
    (void)turn_columns(&out->constants.of);
    const sp_conv_constants *k = &out->constants.of;
    const int64_t taps = tap_count(k), lanes = sp__channel_blocks(k->out_w) * SP_CHANNEL_BLOCK;
    if (taps == 0 || k->channels == 0 || k->filters < 1 || k->filters > FEW_FILTERS) return false;
    if (k->segment % taps != 0 || lanes * 3 > k->out_w * 4) return false;
    if (!patch_fits(k, sp_size_least(k->segment / taps, k->channels), 1)) return false;
    const int64_t images = k->planes / (k->groups * k->filters);
    out->x = (sp_image_form){images, k->groups * k->channels, k->in_h * k->in_w, NULL};
    out->y = (sp_image_form){images, k->groups * k->filters, k->out_h * k->out_w, NULL};
    return set_images(out);
}

bool sp__blocked_has_offsets(const sp_blocked_call *call)
{
    return !call->constants.is_plain && sp_blocked_is_direct(&call->constants.of);
}

bool sp__blocked_depthwise(const sp_conv_constants *conv, sp_blocked_call *out)
{
    *out = (sp_blocked_call){.constants = {.of = *conv}};
    (void)turn_columns(&out->constants.of);
    const sp_conv_constants *k = &out->constants.of;
    const int64_t taps = tap_count(k), block = SP_CHANNEL_BLOCK;
    if (taps == 0 || taps > k->segment || !fills_blocks(k->groups, false)) return false;
    if (k->channels != 1 || k->filters != 1 || !patch_fits(k, 1, block)) return false;
    const int64_t images = k->planes / k->groups;
    out->x = (sp_image_form){images, k->groups, k->in_h * k->in_w, NULL};
    out->y = (sp_image_form){images, k->groups, k->out_h * k->out_w, NULL};
    out->weights = pack_of(SP_KERNEL_ID_depthwise_blocked_f32, taps, k->groups);
    return set_images(out);
}

void sp__blocked_set_lanes(sp_blocked_call *call, const sp_image_form *form)
{
    const int64_t blocks = sp__image_form_blocks(form);
    call->x.map = call->y.map = form->map;
    call->constants.of.groups = blocks * SP_CHANNEL_BLOCK;
}

/* ---- pools ---- */

/* The window of `out`, whose sizes but for the images are set, on images of that form. */
static bool set_pool(const sp_image_form *x, int64_t planes, sp_blocked_call *out, bool *is_turned)
{
    sp_conv_constants *k = &out->constants.of;
    k->groups = sp__image_form_blocks(x) * SP_CHANNEL_BLOCK;
    k->channels = k->filters = 1;
    k->planes = planes;
    out->x = *x;
    out->y = (sp_image_form){x->images, x->channels, k->out_h * k->out_w, x->map};
    const bool is_of_form = planes == x->images * x->channels && x->pixels == k->in_h * k->in_w;
    *is_turned = turn_columns(k);
    if (!is_of_form || tap_count(k) == 0) return false;
    return patch_fits(k, 1, SP_CHANNEL_BLOCK) && set_images(out);
}

bool sp__blocked_max_pool(const sp_pool_constants *pool, const sp_image_form *x,
                          sp_blocked_call *out)
{
    *out = (sp_blocked_call){.constants = {.of = {.in_h = pool->in_h,
                                                  .in_w = pool->in_w,
                                                  .out_h = pool->out_h,
                                                  .out_w = pool->out_w,
                                                  .kernel_h = pool->kernel_h,
                                                  .kernel_w = pool->kernel_w,
                                                  .stride_h = pool->stride_h,
                                                  .stride_w = pool->stride_w,
                                                  .dilation_h = pool->dilation_h,
                                                  .dilation_w = pool->dilation_w,
                                                  .pad_top = pool->pad_top,
                                                  .pad_left = pool->pad_left}}};
    bool is_turned;
    return set_pool(x, pool->planes, out, &is_turned);
}

/* Bytes of results of one image that leave the caches of a core before a pool reads them. */
#define POOLED_BYTES (2 << 20)

bool sp__blocked_conv_pool_pays(const sp_blocked_constants *conv)
{
    const int64_t channels = sp__channel_blocks(conv->of.filters) * SP_CHANNEL_BLOCK;
    return channels * conv->of.out_h * conv->of.out_w * (int64_t)sizeof(float) >= POOLED_BYTES;
}

bool sp__blocked_conv_pool(const sp_blocked_constants *conv, const sp_blocked_call *pool,
                           sp_conv_pool_constants *out)
{
    const sp_conv_constants *c = &conv->of, *p = &pool->constants.of;
    const int64_t span_h = (p->kernel_h - 1) * p->dilation_h + 1;
    const int64_t span_w = (p->kernel_w - 1) * p->dilation_w + 1;
    if (c->groups != 1 || conv->has_other || conv->has_offsets) return false;
    if (p->in_h != c->out_h || p->in_w != c->out_w) return false;
    if (!conv_patch_fits(conv, SP_POOLED_PATCH_ELEMENTS)) return false;
    if (p->kernel_h * p->kernel_w > SP_POOLED_TAPS) return false;
    if (span_h > SP_POOLED_ELEMENTS || span_w > SP_POOLED_ELEMENTS) return false;
    *out = (sp_conv_pool_constants){.conv = *conv, .pool = *p};
    /* The results that one of the maxima of a tile needs. */
    sp_tiling tiling;
    sp__tiling_conv_pool(out, &tiling);
    return span_h * span_w * tiling.size[0] * SP_CHANNEL_BLOCK <= SP_POOLED_ELEMENTS;
}

bool sp__blocked_average_pool(const sp_window_constants *pool, const sp_image_form *x,
                              sp_average_blocked_constants *constants, sp_blocked_call *out)
{
    *out = (sp_blocked_call){.constants = {.of = {.in_h = pool->in[1],
                                                  .in_w = pool->in[2],
                                                  .out_h = pool->out[1],
                                                  .out_w = pool->out[2],
                                                  .kernel_h = pool->kernel[1],
                                                  .kernel_w = pool->kernel[2],
                                                  .stride_h = pool->stride[1],
                                                  .stride_w = pool->stride[2],
                                                  .dilation_h = pool->dilation[1],
                                                  .dilation_w = pool->dilation[2],
                                                  .pad_top = pool->pad[1],
                                                  .pad_left = pool->pad[2]}}};
    if (pool->in[0] != 1 || pool->out[0] != 1 || pool->kernel[0] != 1 || pool->pad[0] != 0) {
        return false;
    }
    bool is_turned;
    if (!set_pool(x, pool->planes, out, &is_turned)) return false;
    *constants = (sp_average_blocked_constants){.window = out->constants,
                                                .pad_bottom = is_turned ? 0 : pool->end[1],
                                                .pad_right = pool->end[is_turned ? 1 : 2],
                                                .counts_padding = pool->counts_padding};
    /* Images of one column have no padding beside it that counts. */
    return !is_turned || pool->end[2] == 0 || !pool->counts_padding;
}

/* ---- others ---- */

/* The channels that kernels of lanes count: those of a map are in all lanes of its blocks. */
static int64_t lane_channels(const sp_image_form *form)
{
    return form->map != NULL ? form->map->blocks * SP_CHANNEL_BLOCK : form->channels;
}

bool sp__blocked_norm(const sp_batch_norm_constants *norm, const sp_image_form *x,
                      sp_norm_blocked_constants *constants)
{
    *constants = (sp_norm_blocked_constants){.channels = lane_channels(x),
                                             .pixels = x->pixels,
                                             .images = x->images,
                                             .epsilon = norm->epsilon,
                                             .activation = norm->activation};
    const bool is_of_form = norm->channels == x->channels && norm->plane == x->pixels &&
                            norm->planes == x->images * x->channels;
    return is_of_form && is_form_counted(x);
}

bool sp__blocked_mean(const sp_reduce_constants *reduce, const sp_image_form *x,
                      sp_channels_constants *constants)
{
    *constants = (sp_channels_constants){
        .channels = lane_channels(x), .pixels = x->pixels, .images = x->images};
    const bool is_mean = reduce->reduction == SP_REDUCE_MEAN && !reduce->has_shift;
    /* Of all pixels of each image: rows of consecutive elements, one after the other. */
    const bool is_of_rows = !reduce->is_columns && reduce->kept_rank == 1 &&
                            reduce->reduced_rank == 1 && reduce->strides[0] == 1 &&
                            reduce->kept_strides[0] == reduce->extent;
    const bool is_of_form =
        reduce->extent == x->pixels && x->pixels > 1 && reduce->count == x->images * x->channels;
    return is_mean && is_of_rows && is_of_form && x->pixels <= INT64_C(4096) * SP_MEAN_BLOCKS &&
           is_form_counted(x);
}

bool sp__blocked_channel_op(sp_kernel_id kernel, bool is_reversed, uint8_t activation,
                            const sp_image_form *x, sp_channel_op_constants *constants)
{
    *constants = (sp_channel_op_constants){.channels = lane_channels(x),
                                           .pixels = x->pixels,
                                           .images = x->images,
                                           .op = sp__element_op_of(kernel, is_reversed),
                                           .activation = activation};
    return constants->op != SP_ACTIVATION_NONE && is_form_counted(x);
}

bool sp__blocked_chain(const sp_image_form *x, sp_channel_chain_constants *constants)
{
    *constants = (sp_channel_chain_constants){
        .channels = lane_channels(x), .pixels = x->pixels, .images = x->images};
    return is_form_counted(x);
}

bool sp__blocked_copy(const sp_image_form *form, sp_channels_constants *constants)
{
    *constants = (sp_channels_constants){
        .channels = form->channels, .pixels = form->pixels, .images = form->images};
    return is_form_counted(form);
}

bool sp__blocked_move(const sp_image_form *from, const sp_image_form *to,
                      sp_channels_move_constants *constants)
{
    *constants = (sp_channels_move_constants){.x_blocks = sp__image_form_blocks(from),
                                              .y_blocks = sp__image_form_blocks(to),
                                              .pixels = to->pixels,
                                              .images = to->images};
    return is_form_counted(to);
}

/* ---- other devices ---- */

static bool is_chain_there(const sp_kernel *kernels, const sp_channel_chain_constants *chain)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        if (!sp__kernel_is_there(&kernels[sp__element_kernel(chain->ops[i].op)])) return false;
    }
    return true;
}

bool sp__blocked_is_there(const sp_kernel *kernels, sp_kernel_id kernel, const void *constants)
{
    const sp_blocked_constants *conv = constants;
    const sp_channel_op_constants *channel = constants;
    switch (kernel) {
    case SP_KERNEL_ID_channels_block:
    case SP_KERNEL_ID_channels_unblock:
    case SP_KERNEL_ID_channels_move:
        return true;
    case SP_KERNEL_ID_conv_pool_blocked_f32: /* the constants begin with the convolution's */
        if (!sp__kernel_is_there(&kernels[SP_KERNEL_ID_max_pool_f32])) return false;
        return sp__blocked_is_there(kernels, SP_KERNEL_ID_conv_blocked_f32, constants);
    case SP_KERNEL_ID_conv_blocked_f32:
    case SP_KERNEL_ID_conv_rows_f32:
    case SP_KERNEL_ID_depthwise_blocked_f32:
        if (conv->has_norm && !sp__kernel_is_there(&kernels[SP_KERNEL_ID_batch_norm_f32])) {
            return false;
        }
        kernel = kernel == SP_KERNEL_ID_depthwise_blocked_f32 ? SP_KERNEL_ID_conv_depthwise_f32
                                                              : SP_KERNEL_ID_conv_f32;
        break;
    case SP_KERNEL_ID_max_pool_blocked_f32:
        kernel = SP_KERNEL_ID_max_pool_f32;
        break;
    case SP_KERNEL_ID_average_pool_blocked_f32:
        kernel = SP_KERNEL_ID_average_pool_f32;
        break;
    case SP_KERNEL_ID_mean_blocked_f32:
        kernel = SP_KERNEL_ID_reduce_f32;
        break;
    case SP_KERNEL_ID_norm_blocked_f32:
        kernel = SP_KERNEL_ID_batch_norm_f32;
        break;
    case SP_KERNEL_ID_gemm_strided_f32:
        kernel = SP_KERNEL_ID_gemm_f32;
        break;
    case SP_KERNEL_ID_channel_chain_f32:
        return is_chain_there(kernels, constants);
    case SP_KERNEL_ID_channel_op_f32:
        kernel = sp__element_kernel(channel->op);
        break;
    default:
        break;
    }
    return sp__kernel_is_there(&kernels[kernel]);
}
