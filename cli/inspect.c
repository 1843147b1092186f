/* SPDX-License-Identifier: Apache-2.0 */
/* streampool inspect MODEL: prints the contents of a file, what in it is unsupported, and the plan
 * with its memory for given sizes. Runs nothing. */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/model_file.h>

#include "arguments.h"
#include "command.h"
#include "failure.h"
#include "source.h"
#include "text.h"

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
    return fail(SP_UNSUPPORTED, "%u op types are not supported; they are marked above",
                info.unsupported_op_count);
}

/* ---- the model ---- */

static sp_status inspect_model(const model_source *source, model_arguments *arguments)
{
    sp_model model;
    TRY(device_arguments_open(&arguments->device));
    TRY(source_load(source, &arguments->device.options, &model));
    const sp_status status = sp__inspect_plan(model, arguments);
    CALL(sp_model_release(model));
    return status;
}

static sp_status inspect_source(const model_source *source, model_arguments *arguments)
{
    sp_model_file file;
    TRY(source_open_file(source, &file));
    const sp_status status = inspect_file(source->name, file);
    CALL(sp_model_file_release(file));
    TRY(status);
    return inspect_model(source, arguments);
}

static sp_status inspect_path(model_arguments *arguments)
{
    model_source source;
    sp_status status = source_open(arguments->path, &source);
    if (status == SP_OK) status = inspect_source(&source, arguments);
    source_close(&source);
    return status;
}

/* ---- the command ---- */

static const cli_option options[] = {MODEL_OPTIONS, DEVICE_OPTIONS};

static const cli_example examples[] = {
    {"inspect model.onnx", "Inputs, outputs, operators, and the plan for small inputs."},
    {"inspect model.onnx --dim batch=8 --dim seq=128",
     "The plan for these sizes, with its memory."},
    {"inspect model.onnx --shape image=1x3x224x224", "The same for the shape of an input."},
};

static int inspect_run(int argc, char **argv)
{
    model_arguments arguments = {0};
    int code;
    if (arguments_parse(&sp__command_inspect, argc, argv, &arguments, &code)) {
        const sp_status status = inspect_path(&arguments);
        if (status != SP_OK) {
            fflush(stdout); /* before the message, if both go to one file */
            failure_print(status);
        }
        code = status == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    model_arguments_free(&arguments);
    return code;
}

const cli_command sp__command_inspect = {
    .name = "inspect",
    .summary = "what a model holds, and its plan",
    .description = "Prints what a file holds, what of it is not supported, and the plan for inputs "
                   "of some sizes: the steps with their kernels, and the memory of a run. Says "
                   "whether a batch of such inputs has the bits of its rows, along which axes, "
                   "or the first node that mixes rows. Fails "
                   "where streampool run with the same arguments would, as far as that is known "
                   "without a run.",
    .operand = "MODEL",
    .operand_help = MODEL_OPERAND_HELP,
    .take_operand = take_model,
    .min_operands = 1,
    .max_operands = 1,
    .operand_completion = COMPLETE_FILE,
    .options = options,
    .option_count = COUNT_OF(options),
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = inspect_run,
};
