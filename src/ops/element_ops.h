/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on single elements as data in constants, one list for all devices and layouts
 * (docs/decisions/0080-pack-formats.md). A kernel applies one to what it has computed, or several,
 * one after the other; each is rounded, and has the bits of a kernel of its own
 * (sp__element_kernel). A device has an evaluator of those that its kernels apply: on the CPU
 * ops/cpu/gemm/activate.h for lists and ops/cpu/blocked/element_vectors.h for vectors, on CUDA
 * sp_activate. C and CUDA C++ compile this text, which includes no header. */
#ifndef SP_OPS_ELEMENT_OPS_H
#define SP_OPS_ELEMENT_OPS_H

/* Of x alone. The bits are those of relu_f32, sigmoid_f32, tanh_f32; for SiLU, x * sigmoid(x),
 * sigmoid_f32 and mul_f32; for HardSwish, x * clip(x + 3, 0, 6) / 6, clip_gate_f32, which is not
 * the op HardSwish: that one rounds elsewhere. */
typedef enum sp_activation {
    SP_ACTIVATION_NONE,
    SP_ACTIVATION_RELU,
    SP_ACTIVATION_SIGMOID,
    SP_ACTIVATION_TANH,
    SP_ACTIVATION_SILU,
    SP_ACTIVATION_HARD_SWISH,
    SP_ACTIVATION_COUNT
} sp_activation;

/* Those of x and numbers; an activation is an operation, too. */
typedef enum sp_element_op {
    SP_ELEMENT_ADD = SP_ACTIVATION_COUNT,
    SP_ELEMENT_SUB,
    SP_ELEMENT_SUB_FROM, /* the number - x */
    SP_ELEMENT_MUL,
    SP_ELEMENT_DIV,
    SP_ELEMENT_DIV_INTO, /* the number / x */
    SP_ELEMENT_NORM,     /* as batch_norm_f32; its numbers: epsilon */
    SP_ELEMENT_CLIP_GATE /* as clip_gate_f32; addend, low, high, divisor */
} sp_element_op;

/* What an operation reads beside x. */
typedef enum sp_element_operand {
    SP_ELEMENT_READS_NOTHING,
    SP_ELEMENT_READS_ONE,    /* one number */
    SP_ELEMENT_READS_LIST,   /* one for each channel of each image */
    SP_ELEMENT_READS_SHARED, /* one for each channel, for all images */
    SP_ELEMENT_READS_NORM    /* the four lists of batch_norm_f32 */
} sp_element_operand;

/* One operation of several. */
typedef struct sp_element_step {
    uint8_t op;      /* sp_element_op or sp_activation */
    uint8_t operand; /* sp_element_operand */
    bool has_relu;   /* behind it */
    float numbers[4];
} sp_element_step;

#define SP_ELEMENT_STEPS 8

#endif
