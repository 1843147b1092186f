/* SPDX-License-Identifier: Apache-2.0 */
/* streampool inspect MODEL: what a file holds, what of it is not supported, and the plan for given
 * sizes with its memory. Runs nothing. */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/model_file.h>

#include "command.h"
#include "failure.h"
#include "text.h"

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

/* ---- the file ---- */

typedef sp_status (*get_port_fn)(sp_model_file file, uint32_t index, sp_model_file_port *out);

static void print_ports(const char *title, sp_model_file file, get_port_fn get_port)
{
    sp_model_file_port port;
    printf("%s\n", title);
    for (uint32_t i = 0; get_port(file, i, &port) == SP_OK; i++) {
        printf("  %s: %s", show_name(port.name).text,
               port.is_tensor ? sp_dtype_name(port.dtype) : "no tensor");
        printf("%s", port.has_shape ? " [" : " of any shape");
        for (uint32_t d = 0; d < port.rank; d++) {
            printf("%s", d > 0 ? "," : "");
            if (port.shape[d] >= 0) printf("%" PRId64, port.shape[d]);
            else
                printf("%s",
                       port.dim_names[d][0] != '\0' ? show_name(port.dim_names[d]).text : "?");
        }
        printf("%s\n", port.has_shape ? "]" : "");
    }
}

static void print_file(const char *path, sp_model_file file, const sp_model_file_info *info)
{
    sp_model_file_opset opset;
    printf("%s: ONNX IR %" PRId64, path, info->ir_version);
    if (info->producer[0] != '\0') printf(" by %s", show_name(info->producer).text);
    for (uint32_t i = 0; sp_model_file_get_opset(file, i, &opset) == SP_OK; i++) {
        printf(", opset %" PRId64 "%s%s", opset.version, opset.domain[0] != '\0' ? " of " : "",
               show_name(opset.domain).text);
    }
    printf("\n%" PRIu32 " nodes, %" PRIu32 " initializers\n", info->node_count,
           info->initializer_count);
    if (info->function_count > 0) {
        printf("%" PRIu32 " functions of its own, whose nodes are counted once\n",
               info->function_count);
    }
    print_ports("inputs", file, sp_model_file_get_input);
    print_ports("outputs", file, sp_model_file_get_output);
}

static void print_ops(sp_model_file file)
{
    sp_model_file_op op;
    printf("ops\n");
    for (uint32_t i = 0; sp_model_file_get_op(file, i, &op) == SP_OK; i++) {
        printf("  %6" PRIu32 " %s", op.count, show_name(op.name).text);
        if (op.domain[0] != '\0') printf(" of %s", show_name(op.domain).text);
        if (op.is_function) printf(": a function of the file");
        printf("%s\n", op.is_supported ? "" : ": not supported");
    }
}

static sp_status inspect_file(const char *path, sp_model_file file)
{
    sp_model_file_info info;
    CALL(sp_model_file_get_info(file, &info));
    print_file(path, file, &info);
    print_ops(file);
    if (info.unsupported_op_count == 0) return SP_OK;
    return fail(SP_UNSUPPORTED, "%u op types are not supported", info.unsupported_op_count);
}

/* ---- the model ---- */

static sp_status inspect_model(const char *path, const sp_inspect_dims *dims)
{
    sp_model model;
    CALL(sp_model_load(path, NULL, &model));
    const sp_status status = sp__inspect_plan(model, dims);
    CALL(sp_model_release(model));
    return status;
}

static sp_status inspect(const char *path, const sp_inspect_dims *dims)
{
    sp_model_file file;
    CALL(sp_model_file_open(path, &file));
    const sp_status status = inspect_file(path, file);
    CALL(sp_model_file_release(file));
    TRY(status);
    return inspect_model(path, dims);
}

/* The message, without the path that the library puts in front: the command is about one file. */
static const char *message_without(const char *path)
{
    const char *message = failure_message();
    const size_t len = strlen(path);
    const bool has_path = strncmp(message, path, len) == 0 && strncmp(message + len, ": ", 2) == 0;
    return has_path ? message + len + 2 : message;
}

int sp__command_inspect(int argc, char **argv)
{
    const char *path = NULL;
    sp_inspect_dims dims = {0};
    if (!parse_arguments(argc, argv, &path, &dims)) {
        print_usage();
        return SP_EXIT_USAGE;
    }
    const sp_status status = inspect(path, &dims);
    if (status == SP_OK) return EXIT_SUCCESS;
    fflush(stdout);
    fprintf(stderr, "streampool: %s: %s\n", sp_status_name(status), message_without(path));
    return EXIT_FAILURE;
}
