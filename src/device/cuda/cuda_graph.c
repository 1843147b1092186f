/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists as CUDA graphs: a chain of nodes, built explicitly. No stream is ever captured, so
 * concurrent calls of other threads cannot get into a graph or break it.
 *
 * The memory of slots is known only at each submission. Before a launch the nodes of kernels that
 * name slots get their addresses, unless they have them from the launch before; that changes no
 * launch that was issued. A list whose copies or fills name slots is issued command by command. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_command.h"
#include "device/queue/record.h"

/* A kernel that names slots. */
typedef struct slot_node {
    CUgraphNode node;
    const sp_record *record; /* of the list */
    CUDA_KERNEL_NODE_PARAMS params;
    sp_cuda_bindings bindings; /* those of slots as at the newest launch */
    void *values[2];           /* of the kernel's parameters */
} slot_node;

/* Compute capability 9.0. */
#define FIRST_ARCHITECTURE_THAT_WAITS 90

typedef struct cuda_graph {
    sp_cuda_device *device;
    CUgraphExec exec;
    const char *name; /* of its last kernel; static, or NULL */
    /* Serialises launches of one graph, as the driver requires; it also executes them serially. */
    sp_mutex lock;
    CUgraph graph; /* kept for its nodes if it has slots; else NULL */
    uint32_t slot_count, node_count;
    slot_node *nodes;   /* constant but for the bindings, which the lock guards, like the next */
    CUdeviceptr *bound; /* by slot: the address that the nodes have; of none at first */
    bool is_bound;
    sp_cuda_word *word; /* which its last kernel raises, or NULL; `launches` under the lock */
} cuda_graph;

/* State of the construction of a graph. */
typedef struct builder {
    sp_cuda_device *device;
    CUgraph graph;
    CUgraphNode last;        /* NULL before the first */
    bool is_kernel;          /* the last is one */
    cuda_graph *owner;       /* gets the nodes of kernels that name slots */
    const sp_record *record; /* of the command that is added */
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

/* ---- slots ---- */

static bool command_names_slots(const sp_command *command)
{
    for (uint32_t i = 0; i < command->binding_count; i++) {
        if (command->bindings[i].memory == NULL) return true;
    }
    return false;
}

static sp_status slots_create(cuda_graph *graph, const sp_command *commands, uint32_t count,
                              uint32_t slot_count)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < count; i++) nodes += command_names_slots(&commands[i]);
    graph->slot_count = slot_count;
    graph->nodes = sp_calloc(nodes, sizeof *graph->nodes);
    graph->bound = sp_calloc(slot_count, sizeof *graph->bound);
    if (graph->nodes != NULL && graph->bound != NULL) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for a graph");
}

static void slot_node_add(const builder *self, const sp_cuda_launch *launch,
                          const CUDA_KERNEL_NODE_PARAMS *params)
{
    slot_node *added = &self->owner->nodes[self->owner->node_count++];
    *added = (slot_node){.node = self->last,
                         .record = self->record,
                         .params = *params,
                         .bindings = launch->bindings};
    added->values[0] = &added->bindings;
    added->values[1] = (void *)(uintptr_t)sp__record_constants(self->record);
    added->params.kernelParams = added->values;
}

static CUresult slot_node_bind_locked(const cuda_graph *graph, slot_node *node)
{
    const sp_binding *bindings = sp__record_bindings(node->record);
    for (uint32_t i = 0; i < node->record->count; i++) {
        if (bindings[i].memory != NULL) continue;
        node->bindings.at[i] = graph->bound[bindings[i].slot] + bindings[i].offset;
    }
    return SP_CUDA(cuGraphExecKernelNodeSetParams)(graph->exec, node->node, &node->params);
}

/* The addresses of a submission; the nodes keep them. *label is of a node that the driver refuses.
 */
static CUresult slots_bind_locked(cuda_graph *graph, const sp_binding *slots, const char **label)
{
    if (graph->is_bound && SP_PLANTED(stale_slots)) return CUDA_SUCCESS;
    bool is_same = graph->is_bound;
    for (uint32_t i = 0; i < graph->slot_count; i++) {
        const CUdeviceptr address = sp__cuda_address(&slots[i]);
        is_same = is_same && graph->bound[i] == address;
        graph->bound[i] = address;
    }
    if (is_same) return CUDA_SUCCESS;
    graph->is_bound = false; /* after an error too */
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const CUresult result = slot_node_bind_locked(graph, &graph->nodes[i]);
        *label = graph->nodes[i].record->command.label;
        if (result != CUDA_SUCCESS) return result;
    }
    graph->is_bound = true;
    return CUDA_SUCCESS;
}

/* ---- nodes ---- */

/* The memory of slots before the first launch. */
static const sp_memory no_memory;

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

static sp_status builder_add_kernel(builder *self, const sp_cuda_launch *launch,
                                    const CUDA_KERNEL_NODE_PARAMS *params)
{
    bool is_early = false;
    if (self->is_kernel) SP_TRY(launch_waits(self->device, launch, &is_early));
    CUgraphNode node = NULL;
    const CUresult result = SP_CUDA(cuGraphAddKernelNode)(
        &node, self->graph, &self->last, is_early ? 0 : builder_behind_count(self), params);
    if (is_early && result == CUDA_SUCCESS) SP_TRY(builder_add_early_edge(self, node));
    SP_TRY(builder_note_node(self, result, node, "cuGraphAddKernelNode"));
    self->is_kernel = true;
    return SP_OK;
}

/* Without memory for a word the graph has none, and no kernel that would raise it. */
static bool builder_word_acquire(const builder *self)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = sp__cuda_word_acquire(self->device, &self->owner->word);
    sp__error_put_back(&scope);
    return status == SP_OK;
}

static sp_status builder_add_dispatch(builder *self, const sp_command *command)
{
    sp_cuda_launch launch;
    sp_binding bindings[SP_MAX_BINDINGS];
    const bool signals = sp__cuda_signals(command->kernel, command->binding_count);
    if (signals && !builder_word_acquire(self)) return SP_OK;
    const bool has_slots = command_names_slots(command);
    for (uint32_t i = 0; i < command->binding_count; i++) {
        bindings[i] = command->bindings[i];
        if (bindings[i].memory == NULL) bindings[i].memory = &no_memory;
    }
    SP_TRY(sp__cuda_launch_make(self->device, command->kernel, command->grid, bindings,
                                command->binding_count, command->constants, &launch));
    if (sp__cuda_launch_is_empty(&launch)) return SP_OK;
    if (signals) {
        launch.bindings.at[0] = self->owner->word->counter;
        launch.bindings.at[1] = (CUdeviceptr)(uintptr_t)self->owner->word->word;
    }
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
    SP_TRY(builder_add_kernel(self, &launch, &params));
    if (has_slots) slot_node_add(self, &launch, &params);
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
    for (uint32_t i = 0; i < count; i++, self->record = sp__record_next(self->record)) {
        const sp_status status = builder_add_command(self, &commands[i]);
        const char *label = commands[i].label;
        if (status != SP_OK && label != NULL) return sp__fail_prefix(status, "%s: ", label);
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

static bool list_has_graph(const sp_command *commands, uint32_t count)
{
    if (count == 0) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (commands[i].type == SP_COMMAND_TIMESTAMP) return false;
        const bool is_kernel = commands[i].type == SP_COMMAND_DISPATCH;
        if (!is_kernel && command_names_slots(&commands[i])) return false;
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
    if (graph->graph != NULL) SP_CUDA(cuGraphDestroy)(graph->graph);
    sp__gpu_gate_open(&device->gpu.gate);
    if (graph->word != NULL) sp__cuda_word_release(device, graph->word);
    sp__cuda_leave();
    sp_mutex_deinit(&graph->lock);
    sp_free(graph->nodes);
    sp_free(graph->bound);
    sp_free(graph);
}

static sp_status exec_create(sp_cuda_device *device, CUgraph graph, CUgraphExec *out)
{
    SP_TRY(sp__cuda_check_on(device, SP_CUDA(cuGraphInstantiate)(out, graph, 0),
                             "cuGraphInstantiate", NULL));
    const CUresult result = SP_CUDA(cuGraphUpload)(*out, device->clock_stream);
    return sp__cuda_check_on(device, result, "cuGraphUpload", NULL);
}

/* `records` are the commands in the list. */
static sp_status graph_instantiate(cuda_graph *graph, const sp_command *commands, uint32_t count,
                                   const sp_record *records)
{
    sp_cuda_device *device = graph->device;
    builder self = {.device = device, .owner = graph, .record = records};
    SP_TRY(
        sp__cuda_check_on(device, SP_CUDA(cuGraphCreate)(&self.graph, 0), "cuGraphCreate", NULL));
    sp_status status = builder_add_all(&self, commands, count);
    for (uint32_t i = 0; i < count; i++) {
        if (commands[i].type != SP_COMMAND_DISPATCH) continue;
        if (sp__cuda_signals(commands[i].kernel, commands[i].binding_count)) continue;
        graph->name = commands[i].kernel->name;
    }
    sp__gpu_gate_close(&device->gpu.gate);
    /* Without a node if all commands were empty. */
    if (status == SP_OK && self.last != NULL) {
        status = exec_create(device, self.graph, &graph->exec);
    }
    if (graph->node_count > 0) graph->graph = self.graph;
    else SP_CUDA(cuGraphDestroy)(self.graph);
    sp__gpu_gate_open(&device->gpu.gate);
    return status;
}

static sp_status graph_new(sp_cuda_device *device, const sp_command *commands, uint32_t count,
                           uint32_t slot_count, const sp_record *records, cuda_graph **out)
{
    cuda_graph *graph = sp_calloc(1, sizeof *graph);
    if (graph == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a graph");
    graph->device = device;
    sp_mutex_init(&graph->lock, SP_LOCK_CUDA_GRAPH);
    sp_status status = slots_create(graph, commands, count, slot_count);
    if (status == SP_OK) {
        sp__cuda_enter(device);
        status = graph_instantiate(graph, commands, count, records);
        sp__cuda_leave();
    }
    if (status != SP_OK) {
        graph_free(graph);
        return status;
    }
    *out = graph;
    return SP_OK;
}

/* A kernel that the driver refuses in a graph. A list without slots is of a plan, and cannot be
 * created then; one with slots is issued command by command, and fails there, as on other kinds. */
static bool is_refused(sp_status status, uint32_t slot_count)
{
    return status == SP_FAILED && slot_count > 0;
}

static sp_status list_add_graph(sp_list *list, sp_cuda_device *device, const sp_command *commands,
                                uint32_t command_count, uint32_t slot_count)
{
    cuda_graph *graph = NULL;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = graph_new(device, commands, command_count, slot_count,
                                       sp__queue_list_records(list), &graph);
    if (status == SP_OK) {
        list->issued = graph;
        list->issued_free = graph_free;
    }
    return sp__error_settle(&scope, is_refused(status, slot_count) ? SP_OK : status);
}

sp_status sp__cuda_list_create(sp_dev *dev, const sp_command *commands, uint32_t command_count,
                               uint32_t slot_count, sp_list **out)
{
    sp_list *list;
    SP_TRY(sp__queue_list_create(dev, commands, command_count, slot_count, &list));
    if (list_has_graph(commands, command_count)) {
        const sp_status status =
            list_add_graph(list, sp__cuda_device(dev), commands, command_count, slot_count);
        if (status != SP_OK) {
            sp__queue_list_release(list);
            return status;
        }
    }
    *out = list;
    return SP_OK;
}

static CUresult graph_launch_locked(cuda_graph *graph, CUstream stream)
{
    const CUresult result = SP_CUDA(cuGraphLaunch)(graph->exec, stream);
    if (result == CUDA_SUCCESS && graph->word != NULL) graph->word->launches++;
    return result;
}

CUresult sp__cuda_list_launch(const sp_list *list, CUstream stream)
{
    cuda_graph *graph = list->issued;
    sp_mutex_lock(&graph->lock);
    const CUresult result = graph_launch_locked(graph, stream);
    sp_mutex_unlock(&graph->lock);
    return result;
}

/* Of calls of the driver: the last, and the command that it was for. */
typedef struct graph_call {
    CUresult result;
    const char *name, *label;
} graph_call;

/* Launched, with the slots' addresses; *word is what the launch raises. The result is checked
 * without the lock, which is a leaf: it may be that the device is lost. */
static graph_call graph_issue_locked(cuda_graph *graph, const sp_record *record, CUstream stream,
                                     sp_gpu_word *word)
{
    graph_call call = {.name = "cuGraphExecKernelNodeSetParams"};
    call.result = slots_bind_locked(graph, sp__record_bindings(record), &call.label);
    if (call.result != CUDA_SUCCESS) return call;
    call = (graph_call){graph_launch_locked(graph, stream), "cuGraphLaunch", record->command.label};
    if (graph->word != NULL) *word = (sp_gpu_word){graph->word->word, graph->word->launches};
    return call;
}

sp_status sp__cuda_issue_list(sp_command_queue *commands, const sp_record *record)
{
    cuda_graph *graph = record->command.list->issued;
    sp_gpu_queue *queue = sp__gpu_queue(commands);
    sp_gpu_word word = {0};
    if (graph == NULL) return SP_UNSUPPORTED;
    if (graph->exec == NULL) return SP_OK;
    sp_store_relaxed(&queue->last_issued, graph->name);
    sp__gpu_gate_pass(&graph->device->gpu.gate);
    sp_mutex_lock(&graph->lock);
    const graph_call call =
        graph_issue_locked(graph, record, sp__cuda_queue(commands)->stream, &word);
    sp_mutex_unlock(&graph->lock);
    SP_TRY(sp__cuda_check_on(graph->device, call.result, call.name, call.label));
    if (word.word != NULL) sp__gpu_note_word(queue, &word);
    else sp__gpu_note_command(queue);
    return SP_OK;
}
