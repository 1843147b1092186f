/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models on tensors: commands of a stream, like the calls of ops.h.
 *
 * Inputs are read from the tensors' storages, and outputs written to them, without a copy through
 * the host. The uses are ordered as all uses of a storage are, whatever stream they are on: a model
 * whose input is another one's output needs no wait between the two, and neither does a thread that
 * gives a tensor to others while the run that writes it is still queued. The bits are those of
 * sp_model_run. */
#ifndef STREAMPOOL_MODEL_TENSORS_H
#define STREAMPOOL_MODEL_TENSORS_H

#include <streampool/model.h>
#include <streampool/stream.h>
#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

/* An input or output: a tensor of the model's device, or host memory, in any mix. The structs
 * belong to the caller and are not needed after the call; one that is zeroed, but for the name, is
 * an output that the call creates.
 *
 *            the caller sets        the call writes
 *   input    tensor or host         nothing
 *   output   tensor                 nothing: the tensor's elements are the result
 *            host                   the host tensor, as sp_model_run
 *            neither                `tensor`: a new, contiguous one, which is the caller's */
typedef struct sp_model_tensor {
    /* NULL: the input or output with the index that the struct has in its array. */
    const char *name;
    sp_tensor tensor;     /* the zero handle: none */
    sp_host_tensor *host; /* NULL: none. Its name is not read */
} sp_model_tensor;

/* Submits a run of the model to the stream, or, for the zero handle, to the calling thread's
 * current stream of the model's device, and returns. Any thread, any stream; runs of one stream
 * are computed in their order. NULL options are all defaults.
 *
 * Inputs may be views of any strides; those that are not contiguous are copied on the device. A
 * tensor may be an input of any number of runs at once. Elements that another command writes after
 * the call are not seen by the run. Data of inputs in host memory is copied by the call, which
 * waits as sp_tensor_from_host does.
 *
 * A given output has the dtype and shape that the run gives it and no elements that share memory.
 * It may be strided, and may share its storage with inputs, one of them or parts of it: it is then
 * computed in memory of the call and copied on the stream. The ranges of two outputs must not
 * overlap. An output in host memory makes the call wait for the run: SP_DEADLOCK, with the run
 * still on the stream, where sp_storage_host_begin on an output would be.
 *
 * What the call waits for otherwise: a plan, the first time that the shapes are used; inputs that
 * determine shapes (sp_port), whose values it reads; and a model whose shapes, branches or loops
 * follow from values that it computes is run by the call, as sp_model_run_with runs it: it reads
 * the inputs from the device and writes the outputs to it.
 *
 * A run that fails later poisons its outputs, as every command does: reads of them, and what is
 * computed from them, get its status and message, and so does sp_stream_synchronize, also after the
 * future has told it; but not if the call has waited for the run and returned it. The run takes
 * no run slot, since it begins when its stream comes to it: the options' priority and no_wait, and
 * max_concurrent_runs and max_waiting of the model, have no effect. The cancel token does: the
 * outputs of a cancelled run are poisoned with SP_CANCELLED. Each stream that runs the model keeps
 * memory for one run of each plan; it is freed with the plan, or when memory is needed.
 *
 * The model, the tensors and the stream may be released at once. Errors, with `tensor` of outputs
 * unchanged: those of sp_model_run for names, counts, dtypes and shapes; SP_INVALID for a handle
 * that does not work, a tensor (sp_tensor_to copies it) or stream of another device, outputs that
 * overlap, a frozen output; SP_UNSUPPORTED for a time-out in the options; SP_BUSY if the stream is
 * full; SP_OUT_OF_MEMORY; SP_CANCELLED if the token was cancelled before; SP_DEVICE_LOST,
 * SP_CLOSED. Elements of given outputs are undefined after an error other than of the arguments. */
SP_API sp_status sp_model_run_tensors(sp_model model, sp_stream stream,
                                      const sp_run_options *options, const sp_model_tensor *inputs,
                                      uint32_t input_count, sp_model_tensor *outputs,
                                      uint32_t output_count);

/* The same; *out is done when the run is, with its status (future.h). sp_future_cancel cancels the
 * run. The outputs are in the structs, as above, and the future has none. SP_UNSUPPORTED for
 * outputs in host memory: read a tensor, or use sp_model_submit. A model that is run by the call
 * gives a future that is done. */
SP_API sp_status sp_model_submit_tensors(sp_model model, sp_stream stream,
                                         const sp_run_options *options,
                                         const sp_model_tensor *inputs, uint32_t input_count,
                                         sp_model_tensor *outputs, uint32_t output_count,
                                         sp_future *out);

SP_EXTERN_C_END

#endif
