/* SPDX-License-Identifier: Apache-2.0 */
/* The search tries, in this order and until the model has a plan: 1 for all free dimensions; one
 * size for all except those that are dimension 0 of an input, which is usually the batch; one size
 * for one free dimension; one size for all. Sizes ascend, so that the model is small. Only errors
 * of shapes and sizes continue the search. */
#include "sizes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "tensors.h"
#include "text.h"

/* Mostly powers of two, and common sizes of images. */
static const int64_t candidates[] = {2,   4,   8,   16,  32,  64,  96,  128,  160,  192,  224,
                                     256, 320, 384, 448, 512, 640, 768, 1024, 2048, 4096, 16384};
enum {
    MOST_TRIES = 200,
    MOST_TOGETHER = 1024, /* above this size only one dimension grows */
    EXAMPLE_SIZE = 512
};

bool sizes_parse(const char *text, uint32_t *rank, int64_t sizes[SP_MAX_RANK])
{
    *rank = 0;
    if (strcmp(text, "scalar") == 0) return true;
    for (;; text++) {
        char digits[24];
        uint64_t size;
        const size_t len = strcspn(text, "x");
        if (*rank == SP_MAX_RANK || len >= sizeof digits) return false;
        memcpy(digits, text, len);
        digits[len] = '\0';
        if (!number_parse(digits, 0, MAX_SIZE, &size)) return false;
        sizes[(*rank)++] = (int64_t)size;
        text += len;
        if (*text == '\0') return true;
    }
}

/* ---- free dimensions ---- */

static free_size *find_size(model_inputs *inputs, const char *name, size_t len)
{
    for (uint32_t i = 0; len > 0 && i < inputs->size_count; i++) {
        free_size *size = &inputs->sizes[i];
        if (strlen(size->name) == len && memcmp(size->name, name, len) == 0) return size;
    }
    return NULL;
}

sp_status sizes_collect(model_inputs *inputs)
{
    inputs->sizes = calloc((size_t)inputs->count * SP_MAX_RANK + 1, sizeof *inputs->sizes);
    if (inputs->sizes == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for sizes of inputs");
    inputs->size_count = 0;
    for (uint32_t i = 0; i < inputs->count; i++) {
        model_input *input = &inputs->list[i];
        for (uint32_t axis = 0; axis < input->port.rank; axis++) {
            if (input->port.shape[axis] >= 0) continue;
            const char *name = input->port.dim_names[axis];
            free_size *size = find_size(inputs, name, strlen(name));
            if (size == NULL) {
                size = &inputs->sizes[inputs->size_count++];
                *size = (free_size){.name = name, .input = i, .axis = axis, .size = 1};
            }
            if (axis == 0) size->is_first = true;
            input->free_sizes[axis] = (uint32_t)(size - inputs->sizes) + 1;
        }
    }
    return SP_OK;
}

/* ---- given sizes ---- */

static sp_status fail_unknown_dim(const model_inputs *inputs, const char *text)
{
    char names[256] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < inputs->size_count; i++) {
        if (inputs->sizes[i].name[0] == '\0' || used >= sizeof names) continue;
        const int length = snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                                    show_name(inputs->sizes[i].name).text);
        used += length > 0 ? (size_t)length : 0;
    }
    return fail(SP_NOT_FOUND, "--dim %s: no input has a free dimension of that name; %s%s", text,
                used > 0 ? "there are: " : "those of this model have none", names);
}

static sp_status take_dims(model_inputs *inputs)
{
    const text_list *texts = &inputs->arguments->dims;
    for (uint32_t i = 0; i < texts->count; i++) {
        const char *text = texts->texts[i];
        const char *equals = strrchr(text, '=');
        free_size *size = find_size(inputs, text, (size_t)(equals - text));
        if (size == NULL) return fail_unknown_dim(inputs, text);
        if (size->is_given) {
            return fail(SP_INVALID, "--dim: dimension '%s' is given twice",
                        show_name(size->name).text);
        }
        size->size = strtoll(equals + 1, NULL, 10);
        size->is_given = true;
        size->is_dim = true;
    }
    return SP_OK;
}

/* Contradicting sizes of one name in files and --shape are checked by the library. */
static sp_status bind_size(model_inputs *inputs, const model_input *input, uint32_t axis,
                           int64_t given)
{
    if (input->free_sizes[axis] == 0) return SP_OK;
    free_size *size = &inputs->sizes[input->free_sizes[axis] - 1];
    if (size->is_dim && size->size != given) {
        return fail(SP_MISMATCH,
                    "dimension '%s' is %" PRId64 " by --dim, but %" PRId64
                    " in the given shape of input '%s'",
                    show_name(size->name).text, size->size, given,
                    show_name(input->port.name).text);
    }
    if (size->is_given) return SP_OK;
    size->size = given;
    size->is_given = true;
    return SP_OK;
}

static sp_status take_shape_of(model_inputs *inputs, model_input *input, const char *text,
                               const char *sizes)
{
    const sp_port *port = &input->port;
    if (input->has_sizes || input->is_file) {
        return fail(SP_INVALID, "--shape %s: the input's shape is given twice%s", text,
                    input->is_file ? ": its file has one" : "");
    }
    /* Sizes contain no '='. If the name ends at an earlier '=', the text after it does not
     * parse. */
    if (!sizes_parse(sizes, &input->rank, input->sizes)) {
        return fail(SP_INVALID, "--shape %s: '%s' is not a list of sizes such as 1x3x224", text,
                    sizes);
    }
    input->has_sizes = true;
    if (!port->has_shape) return SP_OK;
    if (input->rank != port->rank) {
        return fail(SP_MISMATCH, "--shape %s: the input has %u dimensions, not %u", text,
                    port->rank, input->rank);
    }
    for (uint32_t axis = 0; axis < input->rank; axis++) {
        if (port->shape[axis] >= 0 && port->shape[axis] != input->sizes[axis]) {
            return fail(SP_MISMATCH, "--shape %s: dimension %u is %" PRId64 ", not %" PRId64, text,
                        axis, port->shape[axis], input->sizes[axis]);
        }
        TRY(bind_size(inputs, input, axis, input->sizes[axis]));
    }
    return SP_OK;
}

static sp_status take_shapes(model_inputs *inputs)
{
    const text_list *texts = &inputs->arguments->shapes;
    for (uint32_t i = 0; i < texts->count; i++) {
        const char *text = texts->texts[i];
        uint32_t index = 0;
        const char *sizes = "";
        TRY(port_split(inputs->model, sp_model_find_input, "--shape", text, &index, &sizes));
        TRY(take_shape_of(inputs, &inputs->list[index], text, sizes));
    }
    return SP_OK;
}

/* The library refuses a file of another rank. */
static sp_status take_file(model_inputs *inputs, uint32_t index)
{
    const model_input *input = &inputs->list[index];
    const sp_host_tensor *tensor = &inputs->tensors[index];
    if (!input->is_file || tensor->rank != input->port.rank) return SP_OK;
    for (uint32_t axis = 0; axis < tensor->rank; axis++) {
        TRY(bind_size(inputs, input, axis, tensor->shape[axis]));
    }
    return SP_OK;
}

sp_status sizes_take(model_inputs *inputs)
{
    TRY(take_dims(inputs));
    TRY(take_shapes(inputs));
    for (uint32_t i = 0; i < inputs->count; i++) TRY(take_file(inputs, i));
    return SP_OK;
}

/* ---- chosen sizes ---- */

/* Describes an input by the current sizes. Shape-determining inputs get values. */
static sp_status input_describe(model_inputs *inputs, uint32_t index)
{
    const model_input *input = &inputs->list[index];
    const sp_port *port = &input->port;
    sp_host_tensor *tensor = &inputs->tensors[index];
    if (input->is_file) return SP_OK;
    tensor_free(tensor);
    tensor->dtype = port->dtype;
    tensor->rank = input->has_sizes ? input->rank : port->rank;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        if (input->has_sizes) tensor->shape[i] = input->sizes[i];
        else if (port->shape[i] >= 0) tensor->shape[i] = port->shape[i];
        else tensor->shape[i] = inputs->sizes[input->free_sizes[i] - 1].size;
    }
    TRY(tensor_bytes(tensor->dtype, tensor->rank, tensor->shape, &tensor->bytes));
    const bool is_small = tensor->bytes <= SHAPE_DETERMINING_BYTES;
    return port->determines_shapes && is_small ? tensor_make_neutral(tensor) : SP_OK;
}

static sp_status try_sizes(model_inputs *inputs)
{
    sp_plan plan;
    for (uint32_t i = 0; i < inputs->count; i++) TRY(input_describe(inputs, i));
    CALL(sp_plan_create(inputs->model, inputs->tensors, inputs->count, &plan));
    return from_library(sp_plan_release(plan));
}

typedef enum size_choice { CHOOSE_INNER, CHOOSE_ONE, CHOOSE_ALL } size_choice;

/* False if no size was set to `size`. */
static bool set_sizes(model_inputs *inputs, size_choice choice, uint32_t one, int64_t size)
{
    bool is_any = false;
    for (uint32_t i = 0; i < inputs->size_count; i++) {
        free_size *to = &inputs->sizes[i];
        if (to->is_given) continue;
        const bool is_chosen = choice == CHOOSE_ALL || (choice == CHOOSE_ONE && i == one) ||
                               (choice == CHOOSE_INNER && !to->is_first);
        to->size = is_chosen ? size : 1;
        is_any = is_any || is_chosen;
    }
    return is_any;
}

typedef struct size_search {
    model_inputs *inputs;
    uint32_t tries;
    sp_status status;
} size_search;

static bool is_size_error(sp_status status)
{
    return status == SP_MISMATCH || status == SP_INVALID || status == SP_EXHAUSTED;
}

/* True: the search ends. */
static bool search_try(size_search *search, size_choice choice, uint32_t one, int64_t size)
{
    if (!set_sizes(search->inputs, choice, one, size)) return false;
    if (++search->tries > MOST_TRIES) return true;
    search->status = try_sizes(search->inputs);
    return !is_size_error(search->status);
}

static void search_run(size_search *search)
{
    const uint32_t count = search->inputs->size_count;
    for (size_t i = 0; i < COUNT_OF(candidates) && candidates[i] <= MOST_TOGETHER; i++) {
        if (search_try(search, CHOOSE_INNER, 0, candidates[i])) return;
    }
    for (size_t i = 0; i < COUNT_OF(candidates); i++) {
        for (uint32_t one = 0; one < count; one++) {
            if (search_try(search, CHOOSE_ONE, one, candidates[i])) return;
        }
    }
    for (size_t i = 0; i < COUNT_OF(candidates) && candidates[i] <= MOST_TOGETHER; i++) {
        if (search_try(search, CHOOSE_ALL, 0, candidates[i])) return;
    }
}

/* Text truncated at its capacity. */
typedef struct text_out {
    char text[FAILURE_BYTES / 3];
    size_t used;
} text_out;

static void text_append(text_out *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void text_append(text_out *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(out->text + out->used, sizeof out->text - out->used, format, args);
    va_end(args);
    out->used += length > 0 ? (size_t)length : 0;
    if (out->used >= sizeof out->text) out->used = sizeof out->text - 1;
}

/* " --shape x=1x3x512" */
static void print_shape_flag(const sp_port *port, text_out *out)
{
    text_append(out, " --shape %s=", quote_name(port->name).text);
    for (uint32_t axis = 0; axis < port->rank; axis++) {
        const int64_t fixed = port->shape[axis];
        const int64_t example = axis == 0 ? 1 : EXAMPLE_SIZE;
        text_append(out, "%s%" PRId64, axis > 0 ? "x" : "", fixed >= 0 ? fixed : example);
    }
}

/* Whether an earlier dimension without a name belongs to the same input. */
static bool is_shape_printed(const model_inputs *inputs, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        const free_size *former = &inputs->sizes[i];
        const bool is_same = former->input == inputs->sizes[index].input;
        if (is_same && !former->is_given && former->name[0] == '\0') return true;
    }
    return false;
}

/* An example of flags for all sizes to choose: " --dim batch=1 --shape x=1x512". */
static void print_flags(const model_inputs *inputs, text_out *out)
{
    for (uint32_t i = 0; i < inputs->size_count; i++) {
        const free_size *size = &inputs->sizes[i];
        if (size->is_given) continue;
        if (size->name[0] != '\0') {
            text_append(out, " --dim %s=%d", quote_name(size->name).text,
                        size->is_first ? 1 : EXAMPLE_SIZE);
        } else if (!is_shape_printed(inputs, i)) {
            print_shape_flag(&inputs->list[size->input].port, out);
        }
    }
}

sp_status sizes_choose(model_inputs *inputs)
{
    bool is_any = set_sizes(inputs, CHOOSE_ALL, 0, 1);
    if (!is_any) {
        for (uint32_t i = 0; i < inputs->count; i++) TRY(input_describe(inputs, i));
        return SP_OK;
    }
    size_search search = {.inputs = inputs, .status = try_sizes(inputs)};
    if (!is_size_error(search.status)) return search.status;
    char first[FAILURE_BYTES / 2];
    text_out flags = {0};
    const sp_status first_status = search.status;
    snprintf(first, sizeof first, "%s", failure_message());
    search_run(&search);
    if (search.status == SP_OK) return SP_OK;
    print_flags(inputs, &flags);
    return fail(first_status, "%s; no small sizes of its free dimensions work: set them, as in%s",
                first, flags.text);
}

bool sizes_are_chosen(const model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->size_count; i++) {
        if (!inputs->sizes[i].is_given) return true;
    }
    return false;
}

void sizes_print(const model_inputs *inputs)
{
    const char *before = "sizes chosen: ";
    for (uint32_t i = 0; i < inputs->size_count; i++) {
        const free_size *size = &inputs->sizes[i];
        if (size->is_given) continue;
        if (size->name[0] != '\0') printf("%s%s", before, show_name(size->name).text);
        else
            printf("%s%s[%" PRIu32 "]", before, show_name(inputs->list[size->input].port.name).text,
                   size->axis);
        printf("=%" PRId64, size->size);
        before = ", ";
    }
    if (before[0] == ',') printf("\n");
}
