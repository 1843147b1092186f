/* SPDX-License-Identifier: Apache-2.0 */
/* streampool inspect MODEL: what a file holds, what of it is not supported, and the plan for given
 * sizes with its memory. Runs nothing. */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "command.h"

static void print_usage(void)
{
    fprintf(stderr, "usage: streampool inspect MODEL [--dim NAME=SIZE]...\n"
                    "  the plan is made for these sizes of free dimensions; those not named are "
                    "1\n");
}

static bool parse_dim(char *text, sp_inspect_dims *dims)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || dims->count == SP_INSPECT_MAX_DIMS) return false;
    char *end;
    const long long size = strtoll(equals + 1, &end, 10);
    if (end == equals + 1 || *end != '\0' || size < 0) return false;
    *equals = '\0';
    dims->names[dims->count] = text;
    dims->sizes[dims->count++] = size;
    return true;
}

static bool parse_arguments(int argc, char **argv, const char **path, sp_inspect_dims *dims)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--dim") == 0) {
            i++;
            if (i == argc || !parse_dim(argv[i], dims)) return false;
        } else {
            if (*path != NULL) return false;
            *path = argv[i];
        }
    }
    return *path != NULL;
}

static void print_ports(const char *title, const sp_onnx_value_info *ports, uint32_t count)
{
    printf("%s\n", title);
    for (uint32_t i = 0; i < count; i++) {
        const sp_onnx_value_info *port = &ports[i];
        printf("  %s: %s", sp__text_print(port->name).text,
               port->is_tensor ? sp_dtype_name(port->dtype) : "no tensor");
        printf("%s", port->has_shape ? " [" : " of any shape");
        for (uint32_t d = 0; port->has_shape && d < port->rank; d++) {
            const sp_onnx_dim *dim = &port->dims[d];
            printf("%s", d > 0 ? "," : "");
            if (dim->value >= 0) printf("%" PRId64, dim->value);
            else printf("%s", dim->param.len > 0 ? sp__text_print(dim->param).text : "?");
        }
        printf("%s\n", port->has_shape ? "]" : "");
    }
}

static void print_file(const char *path, const sp_onnx_model *model)
{
    printf("%s: ONNX IR %" PRId64, path, model->ir_version);
    if (model->producer.len > 0) printf(" by %s", sp__text_print(model->producer).text);
    for (uint32_t i = 0; i < model->opset_count; i++) {
        const sp_onnx_opset *opset = &model->opsets[i];
        printf(", opset %" PRId64 "%s%s", opset->version, opset->domain.len > 0 ? " of " : "",
               sp__text_print(opset->domain).text);
    }
    printf("\n%" PRIu32 " nodes, %" PRIu32 " initializers\n", model->graph.node_count,
           model->graph.initializer_count);
    if (model->function_count > 0) {
        printf("%" PRIu32 " functions of its own, whose nodes are counted once\n",
               model->function_count);
    }
    print_ports("inputs", model->graph.inputs, model->graph.input_count);
    print_ports("outputs", model->graph.outputs, model->graph.output_count);
}

static sp_status inspect_plan(const char *path, const void *bytes, size_t len,
                              const sp_inspect_dims *dims)
{
    char *folder = sp_file_folder(path);
    if (folder == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a path");
    const sp_graph *graph = NULL;
    sp_status status = sp__graph_load_in(folder, bytes, len, &graph);
    if (status == SP_OK) status = sp__inspect_plan(graph, dims);
    sp__graph_free(graph);
    sp_free(folder);
    return status;
}

static sp_status inspect_bytes(const char *path, const void *bytes, size_t len,
                               const sp_inspect_dims *dims)
{
    const sp_onnx_model *model;
    SP_TRY(sp__onnx_read(bytes, len, &model));
    print_file(path, model);
    uint32_t missing;
    const sp_status status = sp__inspect_ops(model, &missing);
    sp__onnx_free(model);
    SP_TRY(status);
    if (missing > 0) {
        return sp__fail(SP_UNSUPPORTED, "%u op types are not supported", missing);
    }
    return inspect_plan(path, bytes, len, dims);
}

int sp__command_inspect(int argc, char **argv)
{
    const char *path = NULL;
    sp_inspect_dims dims = {0};
    if (!parse_arguments(argc, argv, &path, &dims)) {
        print_usage();
        return SP_EXIT_USAGE;
    }
    void *bytes;
    size_t len;
    sp_status status = sp_file_read(path, &bytes, &len);
    if (status == SP_OK) {
        status = inspect_bytes(path, bytes, len, &dims);
        sp_free(bytes);
    }
    if (status == SP_OK) return EXIT_SUCCESS;
    fflush(stdout);
    fprintf(stderr, "streampool: %s: %s\n", sp_status_name(status), sp_last_error());
    return EXIT_FAILURE;
}
