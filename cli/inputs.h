/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a model for `run` and `inspect`: read from files or generated, with sizes of free
 * dimensions given or chosen. Both commands use these functions, so that they refuse the same
 * inputs. */
#ifndef SP_CLI_INPUTS_H
#define SP_CLI_INPUTS_H

#include <streampool/plan.h>

#include "arguments.h"
#include "device_options.h"

/* Inputs up to this size may be shape-determining. */
#define SHAPE_DETERMINING_BYTES 512

/* The first member of a command's arguments. */
typedef struct model_arguments {
    device_arguments device; /* first */
    const char *path;        /* "-": standard input */
    uint64_t seed;
    text_list inputs; /* NAME=FILE, FILE.npz or a folder */
    text_list shapes; /* NAME=1x3x224x224 */
    text_list dims;   /* NAME=SIZE */
} model_arguments;

bool take_model(void *arguments, const char *value);
bool take_input(void *arguments, const char *value);
bool take_shape(void *arguments, const char *value);
bool take_dim(void *arguments, const char *value);
bool take_seed(void *arguments, const char *value);

void model_arguments_free(model_arguments *arguments);

#define MODEL_OPERAND_HELP "an ONNX file, or - for standard input"

/* Their rows in a command's table. */
/* clang-format off */
#define MODEL_OPTIONS                                                                              \
    {.name = "--input", .value = "NAME=FILE",                                                      \
     .limits = "an input's name and a .npy file, a .npz archive with an array of that name, an "   \
               "ONNX TensorProto (any other ending), or - for standard input; or FILE.npz alone, " \
               "whose arrays are named as the inputs; or a folder of ONNX's test data, whose "     \
               "input_0.pb, input_1.pb and so on are the first inputs",                            \
     .help = "Read an input from a file. Inputs without one are generated.",                       \
     .take = take_input, .completion = COMPLETE_FILE, .is_repeatable = true},                      \
    {.name = "--shape", .value = "NAME=SIZES",                                                     \
     .limits = "an input's name and its sizes, as in x=1x3x224x224, at most 8, each from 0 to "    \
               "2^40; x=scalar has none",                                                          \
     .help = "The shape of an input that is generated.",                                           \
     .take = take_shape, .is_repeatable = true},                                                   \
    {.name = "--dim", .value = "NAME=SIZE",                                                        \
     .limits = "the name of a free dimension and a number from 0 to 2^40",                         \
     .help = "The size of a free dimension, in all inputs. Those that are not given are chosen: "  \
             "1, or the first of some sizes that the model works with; they are printed.",         \
     .take = take_dim, .is_repeatable = true},                                                     \
    {.name = "--seed", .value = "N", .limits = "a number from 0 to 2^64 - 1",                      \
     .help = "The seed of generated values; 0 unless one is given. Floating-point values are in "  \
             "[-1, 1), others are 0; of shape-determining inputs they are 1 and 0, whatever the "  \
             "seed. The same seed gives the same values each time.",                               \
     .take = take_seed}
/* clang-format on */

/* A free dimension: all dimensions of one name, or one dimension without a name. */
typedef struct free_size {
    const char *name; /* "" if the file gives none */
    uint32_t input;   /* the first input that has it */
    uint32_t axis;
    int64_t size;
    bool is_given;
    bool is_dim;   /* by --dim */
    bool is_first; /* dimension 0 of some input: usually the batch size */
} free_size;

typedef struct model_input {
    sp_port port;
    bool is_file;
    bool has_sizes; /* by --shape */
    uint32_t rank;  /* of `sizes` */
    int64_t sizes[SP_MAX_RANK];
    uint32_t
        free_sizes[SP_MAX_RANK]; /* 1 + index of the free dimension; 0: the file gives the size */
} model_input;

typedef struct model_inputs {
    sp_model model;
    const model_arguments *arguments;
    uint32_t count;
    model_input *list;
    sp_host_tensor *tensors; /* one per input; `data` is NULL until it is read or generated */
    free_size *sizes;
    uint32_t size_count;
} model_inputs;

/* Reads files, chooses sizes (sizes_print prints them) and generates the shape-determining inputs.
 * End with inputs_close, also after a failure. */
sp_status inputs_open(sp_model model, const model_arguments *arguments, model_inputs *out);

/* Generates the values of all inputs that have none yet. */
sp_status inputs_fill(model_inputs *inputs);

void inputs_close(model_inputs *inputs);

/* Splits NAME=VALUE where NAME is a port. The longest matching name is used, since a name may
 * contain '='. SP_NOT_FOUND lists the names. */
typedef sp_status (*find_port_fn)(sp_model model, const char *name, uint32_t *index);
sp_status port_split(sp_model model, find_port_fn find, const char *option, const char *text,
                     uint32_t *index, const char **value);

/* Is the text NAME=VALUE, with a name and a value? */
bool has_name_and_value(const char *text);

#endif
