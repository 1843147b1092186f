/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists as CUDA graphs: a chain of nodes, built explicitly. No stream is ever captured, so
 * concurrent calls of other threads cannot get into a graph or break it. A list with slots, whose
 * memory is known only at each submission, is issued command by command. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_command.h"

/* Compute capability 9.0. */
#define FIRST_ARCHITECTURE_THAT_WAITS 90

typedef struct cuda_graph {
    sp_cuda_device *device;
    CUgraphExec exec;
    const char *name; /* of its last kernel; static, or NULL */
    /* Serialises launches of one graph, as the driver requires; it also executes them serially. */
    sp_mutex lock;
} cuda_graph;

/* State of the construction of a graph. */
typedef struct builder {
    sp_cuda_device *device;
    CUgraph graph;
    CUgraphNode last; /* NULL before the first */
    bool is_kernel;   /* the last is one */
} builder;

static sp_status builder_note_node(builder *self, CUresult result, CUgraphNode node,
                                   const char *call)
{
    SP_TRY(sp__cuda_check_on(self->device, result, call, NULL));
    self->last = node;
    self->is_kernel = false;
    return SP_OK;
}

static size_t builder_behind_count(const builder *self)
{
    return self->last != NULL ? 1 : 0;
}

/* Does the compiled kernel wait itself for the one before it? PTX of an older architecture, which
 * the driver compiles for newer ones, has no instruction for it. */
static sp_status launch_waits(sp_cuda_device *device, const sp_cuda_launch *launch, bool *out)
{
    int architecture = 0;
    *out = launch->waits && sp__cuda_api.cuGraphAddDependencies != NULL;
    if (!*out) return SP_OK;
    const CUresult result =
        SP_CUDA(cuFuncGetAttribute)(&architecture, CU_FUNC_ATTRIBUTE_PTX_VERSION, launch->function);
    *out = architecture >= FIRST_ARCHITECTURE_THAT_WAITS;
    return sp__cuda_check_on(device, result, "cuFuncGetAttribute", NULL);
}

/* An edge to a kernel from the kernel before it: that may be launched before the other has ended.
 */
static sp_status builder_add_early_edge(const builder *self, CUgraphNode node)
{
    const CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                  .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    const CUresult result =
        SP_CUDA(cuGraphAddDependencies)(self->graph, &self->last, &node, &edge, 1);
    return sp__cuda_check_on(self->device, result, "cuGraphAddDependencies", NULL);
}

static sp_status builder_add_dispatch(builder *self, const sp_command *command)
{
    sp_cuda_launch launch;
    SP_TRY(sp__cuda_launch_make(self->device, command->kernel, command->grid, command->bindings,
                                command->binding_count, command->constants, &launch));
    if (sp__cuda_launch_is_empty(&launch)) return SP_OK;
    const sp_launch_shape *shape = &launch.shape;
    const CUDA_KERNEL_NODE_PARAMS params = {.func = launch.function,
                                            .gridDimX = shape->grid[0],
                                            .gridDimY = shape->grid[1],
                                            .gridDimZ = shape->grid[2],
                                            .blockDimX = shape->block[0],
                                            .blockDimY = shape->block[1],
                                            .blockDimZ = shape->block[2],
                                            .sharedMemBytes = shape->shared_bytes,
                                            .kernelParams = launch.params};
    bool is_early = false;
    if (self->is_kernel) SP_TRY(launch_waits(self->device, &launch, &is_early));
    CUgraphNode node = NULL;
    const CUresult result = SP_CUDA(cuGraphAddKernelNode)(
        &node, self->graph, &self->last, is_early ? 0 : builder_behind_count(self), &params);
    if (is_early && result == CUDA_SUCCESS) SP_TRY(builder_add_early_edge(self, node));
    SP_TRY(builder_note_node(self, result, node, "cuGraphAddKernelNode"));
    self->is_kernel = true;
    return SP_OK;
}

static sp_status builder_add_copy(builder *self, const sp_command *command)
{
    const sp_binding *target = &command->bindings[0];
    const sp_binding *source = &command->bindings[1];
    if (target->bytes == 0) return SP_OK;
    const CUDA_MEMCPY3D params = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .srcDevice = sp__cuda_address(source),
                                  .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .dstDevice = sp__cuda_address(target),
                                  .WidthInBytes = target->bytes,
                                  .Height = 1,
                                  .Depth = 1};
    CUgraphNode node = NULL;
    const CUresult result =
        SP_CUDA(cuGraphAddMemcpyNode)(&node, self->graph, &self->last, builder_behind_count(self),
                                      &params, self->device->context);
    return builder_note_node(self, result, node, "cuGraphAddMemcpyNode");
}

static sp_status builder_add_fill(builder *self, const sp_command *command)
{
    const sp_binding *target = &command->bindings[0];
    const uint32_t size = command->constant_bytes;
    uint64_t pattern = 0;
    memcpy(&pattern, command->constants, size);
    const uint64_t count = target->bytes / size;
    /* A pattern of 8 bytes is two columns of a matrix of 4-byte words. */
    const uint32_t columns = size == 8 ? 2 : 1;
    for (uint32_t i = 0; i < columns && count > 0; i++) {
        const CUDA_MEMSET_NODE_PARAMS params = {.dst =
                                                    sp__cuda_address(target) + (CUdeviceptr)i * 4,
                                                .pitch = size == 8 ? 8 : 0,
                                                .value = (unsigned int)(pattern >> (32 * i)),
                                                .elementSize = size == 8 ? 4 : size,
                                                .width = size == 8 ? 1 : count,
                                                .height = size == 8 ? count : 1};
        CUgraphNode node = NULL;
        const CUresult result = SP_CUDA(cuGraphAddMemsetNode)(&node, self->graph, &self->last,
                                                              builder_behind_count(self), &params,
                                                              self->device->context);
        SP_TRY(builder_note_node(self, result, node, "cuGraphAddMemsetNode"));
    }
    return SP_OK;
}

static sp_status builder_add_command(builder *self, const sp_command *command)
{
    switch (command->type) {
    case SP_COMMAND_DISPATCH:
        return builder_add_dispatch(self, command);
    case SP_COMMAND_COPY:
        return builder_add_copy(self, command);
    case SP_COMMAND_FILL:
        return builder_add_fill(self, command);
    case SP_COMMAND_HOST:
    case SP_COMMAND_TIMESTAMP:
    case SP_COMMAND_LIST:
        break; /* a list with such a command has no graph */
    }
    return sp__fail(SP_INTERNAL, "a graph has no command %d", (int)command->type);
}

static sp_status builder_add_all(builder *self, const sp_command *commands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_status status = builder_add_command(self, &commands[i]);
        const char *label = commands[i].label;
        if (status != SP_OK && label != NULL) return sp__fail_prefix(status, "%s: ", label);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

static bool list_has_graph(const sp_command *commands, uint32_t count, uint32_t slot_count)
{
    if (slot_count > 0 || count == 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (commands[i].type == SP_COMMAND_TIMESTAMP) return false;
        for (uint32_t k = 0; k < commands[i].binding_count; k++) {
            /* Poison is checked for each command; bindings of execution contexts have none. */
            if (commands[i].bindings[k].poison != NULL) return false;
        }
    }
    return true;
}

/* ---- life ---- */

static void graph_free(void *issued)
{
    cuda_graph *graph = issued;
    sp_cuda_device *device = graph->device;
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    if (graph->exec != NULL) SP_CUDA(cuGraphExecDestroy)(graph->exec);
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
    sp_mutex_deinit(&graph->lock);
    sp_free(graph);
}

static sp_status exec_create(sp_cuda_device *device, CUgraph graph, CUgraphExec *out)
{
    SP_TRY(sp__cuda_check_on(device, SP_CUDA(cuGraphInstantiate)(out, graph, 0),
                             "cuGraphInstantiate", NULL));
    const CUresult result = SP_CUDA(cuGraphUpload)(*out, device->clock_stream);
    return sp__cuda_check_on(device, result, "cuGraphUpload", NULL);
}

static sp_status graph_instantiate(cuda_graph *graph, const sp_command *commands, uint32_t count)
{
    sp_cuda_device *device = graph->device;
    builder self = {.device = device};
    SP_TRY(
        sp__cuda_check_on(device, SP_CUDA(cuGraphCreate)(&self.graph, 0), "cuGraphCreate", NULL));
    sp_status status = builder_add_all(&self, commands, count);
    for (uint32_t i = 0; i < count; i++) {
        if (commands[i].type == SP_COMMAND_DISPATCH) graph->name = commands[i].kernel->name;
    }
    sp__gpu_gate_close(&device->gpu.gate);
    /* Without a node if all commands were empty. */
    if (status == SP_OK && self.last != NULL) {
        status = exec_create(device, self.graph, &graph->exec);
    }
    SP_CUDA(cuGraphDestroy)(self.graph);
    sp__gpu_gate_open(&device->gpu.gate);
    return status;
}

static sp_status graph_new(sp_cuda_device *device, const sp_command *commands, uint32_t count,
                           cuda_graph **out)
{
    cuda_graph *graph = sp_calloc(1, sizeof *graph);
    if (graph == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a graph");
    graph->device = device;
    sp_mutex_init(&graph->lock, SP_LOCK_CUDA_GRAPH);
    sp__cuda_enter(device);
    const sp_status status = graph_instantiate(graph, commands, count);
    sp__cuda_leave();
    if (status != SP_OK) {
        graph_free(graph);
        return status;
    }
    *out = graph;
    return SP_OK;
}

sp_status sp__cuda_list_create(sp_dev *dev, const sp_command *commands, uint32_t command_count,
                               uint32_t slot_count, sp_list **out)
{
    sp_list *list;
    SP_TRY(sp__queue_list_create(dev, commands, command_count, slot_count, &list));
    if (list_has_graph(commands, command_count, slot_count)) {
        cuda_graph *graph = NULL;
        const sp_status status = graph_new(sp__cuda_device(dev), commands, command_count, &graph);
        if (status != SP_OK) {
            sp__queue_list_release(list);
            return status;
        }
        list->issued = graph;
        list->issued_free = graph_free;
    }
    *out = list;
    return SP_OK;
}

CUgraphExec sp__cuda_list_graph(const sp_list *list)
{
    const cuda_graph *graph = list->issued;
    return graph != NULL ? graph->exec : NULL;
}

sp_status sp__cuda_issue_list(sp_command_queue *commands, const sp_record *record)
{
    cuda_graph *graph = record->command.list->issued;
    if (graph == NULL) return SP_UNSUPPORTED;
    if (graph->exec == NULL) return SP_OK;
    sp_store_relaxed(&sp__gpu_queue(commands)->last_issued, graph->name);
    sp__gpu_gate_pass(&graph->device->gpu.gate);
    sp_mutex_lock(&graph->lock);
    const CUresult result = SP_CUDA(cuGraphLaunch)(graph->exec, sp__cuda_queue(commands)->stream);
    sp_mutex_unlock(&graph->lock);
    return sp__cuda_check_on(graph->device, result, "cuGraphLaunch", record->command.label);
}
