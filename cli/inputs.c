/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/npy.h>

#include "failure.h"
#include "sizes.h"
#include "source.h"
#include "tensors.h"
#include "test_data.h"
#include "text.h"

/* ---- arguments ---- */

bool has_name_and_value(const char *text)
{
    const char *equals = strchr(text, '=');
    return equals != NULL && equals > text && text[strlen(text) - 1] != '=';
}

bool take_model(void *arguments, const char *value)
{
    ((model_arguments *)arguments)->path = value;
    return value[0] != '\0';
}

bool take_input(void *arguments, const char *value)
{
    model_arguments *out = arguments;
    const bool is_good =
        has_name_and_value(value) || text_ends_in(value, ".npz") || path_is_folder(value);
    return is_good && text_list_add(&out->inputs, value);
}

bool take_shape(void *arguments, const char *value)
{
    model_arguments *out = arguments;
    int64_t sizes[SP_MAX_RANK];
    uint32_t rank;
    if (!has_name_and_value(value)) return false;
    return sizes_parse(strrchr(value, '=') + 1, &rank, sizes) && text_list_add(&out->shapes, value);
}

bool take_dim(void *arguments, const char *value)
{
    model_arguments *out = arguments;
    uint64_t size;
    if (!has_name_and_value(value)) return false;
    return number_parse(strrchr(value, '=') + 1, 0, MAX_SIZE, &size) &&
           text_list_add(&out->dims, value);
}

bool take_seed(void *arguments, const char *value)
{
    return number_parse(value, 0, UINT64_MAX, &((model_arguments *)arguments)->seed);
}

void model_arguments_free(model_arguments *arguments)
{
    text_list_free(&arguments->inputs);
    text_list_free(&arguments->shapes);
    text_list_free(&arguments->dims);
}

/* ---- files ---- */

sp_status port_split(sp_model model, find_port_fn find, const char *option, const char *text,
                     uint32_t *index, const char **value)
{
    char *name = strdup(text);
    if (name == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the name in %s", text);
    sp_status status = SP_NOT_FOUND;
    for (char *equals; status == SP_NOT_FOUND && (equals = strrchr(name, '=')) != NULL;) {
        *equals = '\0';
        status = from_library(find(model, name, index));
        *value = text + (equals - name) + 1;
    }
    free(name);
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s %s: ", option, text);
}

static sp_status input_claim(model_input *input)
{
    if (input->is_file) {
        return fail(SP_INVALID, "--input: input '%s' is given twice",
                    show_name(input->port.name).text);
    }
    input->is_file = true;
    return SP_OK;
}

static sp_status input_read(model_inputs *inputs, uint32_t index, const char *file)
{
    model_input *input = &inputs->list[index];
    TRY(input_claim(input));
    const sp_status status = tensor_read_named(file, input->port.name, &inputs->tensors[index]);
    if (status == SP_OK) return SP_OK;
    return fail_prefix(status, "input '%s': ", show_name(input->port.name).text);
}

/* Moves the tensors to the first inputs. */
static sp_status take_tensors(model_inputs *inputs, tensor_list *found)
{
    if (found->count == 0) return fail(SP_IO, "it has no input_0.pb");
    if (found->count > inputs->count) {
        return fail(SP_MISMATCH, "it has %u inputs, the model %u", found->count, inputs->count);
    }
    for (uint32_t i = 0; i < found->count; i++) {
        TRY(input_claim(&inputs->list[i]));
        inputs->tensors[i] = found->list[i];
        found->list[i] = (sp_host_tensor){0};
    }
    return SP_OK;
}

static sp_status read_folder(model_inputs *inputs, const char *folder)
{
    tensor_list found = {0};
    sp_status status = tensors_read(folder, "input_%u.pb", &found);
    if (status == SP_OK) status = take_tensors(inputs, &found);
    tensors_free(&found);
    return status == SP_OK ? SP_OK : fail_prefix(status, "--input %s: ", folder);
}

typedef struct archive_visit {
    model_inputs *inputs;
    const char *file;
    sp_status status;
} archive_visit;

/* Called by sp_npz_list for each array; keeps the first failure. */
static void archive_read_array(void *ctx, const char *name)
{
    archive_visit *visit = ctx;
    uint32_t index;
    if (visit->status != SP_OK) return;
    visit->status = from_library(sp_model_find_input(visit->inputs->model, name, &index));
    if (visit->status == SP_OK) visit->status = input_read(visit->inputs, index, visit->file);
    else visit->status = fail_prefix(visit->status, "--input %s: ", visit->file);
}

static sp_status read_archive(model_inputs *inputs, const char *file)
{
    archive_visit visit = {.inputs = inputs, .file = file};
    CALL(sp_npz_list(file, archive_read_array, &visit));
    return visit.status;
}

/* NAME=FILE, or an archive or a folder of all inputs. If the text before an '=' names an input it
 * is NAME=FILE, even if the whole text is a path that exists. */
static sp_status read_argument(model_inputs *inputs, const char *text)
{
    uint32_t index = 0;
    const char *file = "";
    const sp_status status =
        port_split(inputs->model, sp_model_find_input, "--input", text, &index, &file);
    if (status == SP_OK) return input_read(inputs, index, file);
    if (status != SP_NOT_FOUND) return status;
    if (path_is_folder(text)) return read_folder(inputs, text);
    if (!text_ends_in(text, ".npz")) return status;
    /* FILE.npz alone. If it has an '=' and no such file exists, it is NAME=FILE.npz with a wrong
     * name. */
    if (strchr(text, '=') != NULL && !file_exists(text)) return status;
    return read_archive(inputs, text);
}

/* Standard input can be read once: by the model or by one input. */
static sp_status check_standard_input(const model_arguments *arguments)
{
    unsigned count = is_standard_input(arguments->path) ? 1 : 0;
    for (uint32_t i = 0; i < arguments->inputs.count; i++) {
        const char *equals = strrchr(arguments->inputs.texts[i], '=');
        count += equals != NULL && is_standard_input(equals + 1);
    }
    if (count <= 1) return SP_OK;
    return fail(SP_INVALID, STANDARD_INPUT " can be read only once, but - is given %u times",
                count);
}

static sp_status read_files(model_inputs *inputs)
{
    const text_list *texts = &inputs->arguments->inputs;
    TRY(check_standard_input(inputs->arguments));
    for (uint32_t i = 0; i < texts->count; i++) TRY(read_argument(inputs, texts->texts[i]));
    return SP_OK;
}

/* ---- all inputs ---- */

static sp_status inputs_make(sp_model model, model_inputs *out)
{
    sp_model_info info;
    CALL(sp_model_get_info(model, &info));
    out->list = calloc((size_t)info.input_count + 1, sizeof *out->list);
    out->tensors = calloc((size_t)info.input_count + 1, sizeof *out->tensors);
    if (out->list == NULL || out->tensors == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for %u inputs", info.input_count);
    }
    out->count = info.input_count;
    for (uint32_t i = 0; i < out->count; i++)
        CALL(sp_model_get_input(model, i, &out->list[i].port));
    return SP_OK;
}

/* The command line must give what the model's file leaves out. */
static sp_status check_input(const model_input *input)
{
    const char *name = input->port.name;
    if (input->is_file) return SP_OK;
    if (input->port.dtype == SP_DTYPE_NONE) {
        return fail(SP_UNSUPPORTED,
                    "the file does not give the type of input '%s': use --input, as in "
                    "--input %s=FILE.npy",
                    show_name(name).text, quote_name(name).text);
    }
    if (input->port.has_shape || input->has_sizes) return SP_OK;
    return fail(SP_UNSUPPORTED,
                "the file does not give the shape of input '%s': use --shape, as in "
                "--shape %s=1x3x224x224",
                show_name(name).text, quote_name(name).text);
}

sp_status inputs_open(sp_model model, const model_arguments *arguments, model_inputs *out)
{
    *out = (model_inputs){.model = model, .arguments = arguments};
    TRY(inputs_make(model, out));
    TRY(sizes_collect(out));
    TRY(read_files(out));
    TRY(sizes_take(out));
    for (uint32_t i = 0; i < out->count; i++) TRY(check_input(&out->list[i]));
    return sizes_choose(out);
}

sp_status inputs_fill(model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (inputs->tensors[i].data != NULL) continue;
        const uint64_t seed = inputs->arguments->seed + ((uint64_t)i << 32);
        TRY(tensor_make_up(&inputs->tensors[i], seed));
    }
    return SP_OK;
}

void inputs_close(model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) tensor_free(&inputs->tensors[i]);
    free(inputs->list);
    free(inputs->tensors);
    free(inputs->sizes);
    *inputs = (model_inputs){0};
}
