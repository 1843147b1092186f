/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes with edges to earlier nodes. A launch runs, of the ready nodes, the one added last,
 * so that missing edges show as errors. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphNode_st {
    CUgraph graph; /* NULL in an exec */
    uint32_t index;
    uint32_t behind_count;
    uint32_t *behind; /* indices */
    fake_work *work;
};

struct CUgraph_st {
    CUgraphNode *nodes;
    uint32_t count, capacity;
};

struct CUgraphExec_st {
    atomic_uint references; /* one of the handle, one of each launch until it has ended */
    CUcontext context;
    struct CUgraph_st graph;
    pthread_mutex_t lock;
    fake_mark *newest;   /* end of the newest launch: launches of one exec run in sequence */
    fake_work **retired; /* of nodes that were given other parameters: launches may run it */
    uint32_t retired_count, retired_capacity;
};

typedef struct launch_command {
    fake_command base;
    CUgraphExec exec;
    fake_mark *former, *own;
    fake_work **works; /* of the nodes, as they were at the launch */
} launch_command;

static void free_node(CUgraphNode node)
{
    if (node == NULL) return;
    free(node->work);
    free(node->behind);
    free(node);
}

static void clear_graph(CUgraph graph)
{
    for (uint32_t i = 0; i < graph->count; i++) free_node(graph->nodes[i]);
    free(graph->nodes);
}

/* Takes ownership of the node. */
static CUresult append_node(CUgraph graph, CUgraphNode node)
{
    if (graph->count == graph->capacity) {
        const uint32_t capacity = graph->capacity * 2 + 8;
        CUgraphNode *nodes = realloc(graph->nodes, capacity * sizeof(CUgraphNode));
        if (nodes == NULL) {
            free_node(node);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        graph->nodes = nodes;
        graph->capacity = capacity;
    }
    node->index = graph->count;
    graph->nodes[graph->count++] = node;
    return CUDA_SUCCESS;
}

/* Takes ownership of the work; NULL if memory runs out. */
static CUgraphNode make_node(CUgraph graph, fake_work *work, uint32_t behind_count)
{
    CUgraphNode node = calloc(1, sizeof *node);
    uint32_t *behind = calloc(behind_count + 1, sizeof *behind);
    if (node == NULL || behind == NULL || work == NULL) {
        free(node);
        free(behind);
        free(work);
        return NULL;
    }
    *node = (struct CUgraphNode_st){
        .graph = graph, .behind_count = behind_count, .behind = behind, .work = work};
    return node;
}

static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *behind, size_t count,
                         fake_work *work, CUresult result)
{
    if (work == NULL) return result;
    CUgraphNode node = make_node(graph, work, (uint32_t)count);
    if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (behind[i] == NULL || behind[i]->graph != graph) {
            free_node(node);
            return CUDA_ERROR_INVALID_VALUE;
        }
        node->behind[i] = behind[i]->index;
    }
    FAKE_TRY(append_node(graph, node));
    *out = node;
    return CUDA_SUCCESS;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    FAKE_CONTEXT(cuGraphCreate, context);
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = calloc(1, sizeof **graph);
    if (*graph == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    fake_count(FAKE_GRAPH, 1);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    FAKE_CONTEXT_TO_DESTROY(cuGraphDestroy, context);
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    clear_graph(graph);
    free(graph);
    return fake_destroyed(FAKE_GRAPH, context);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                 size_t behind_count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    FAKE_CONTEXT(cuGraphAddKernelNode, context);
    if (graph == NULL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (params->ctx != NULL && params->ctx != context) return FAKE_ERROR_INVALID_CONTEXT;
    CUresult result;
    fake_work *work = fake_work_kernel(params, &result);
    return add_node(node, graph, behind, behind_count, work, result);
}

/* A node that may be launched early waits itself, so every edge is an order. */
CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    FAKE_CONTEXT(cuGraphAddDependencies, context);
    if (graph == NULL) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUgraphNode node = to[i];
        const bool is_inside = from[i]->graph == graph && node->graph == graph;
        if (!is_inside || from[i]->index >= node->index) return CUDA_ERROR_INVALID_VALUE;
        const bool is_early = edges != NULL && edges[i].type != 0;
        if (is_early && (from[i]->work->kind != FAKE_KERNEL || node->work->kind != FAKE_KERNEL)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        uint32_t *behind = realloc(node->behind, (node->behind_count + 1) * sizeof *behind);
        if (behind == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
        behind[node->behind_count++] = from[i]->index;
        node->behind = behind;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                              size_t behind_count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    FAKE_CONTEXT(cuGraphAddMemcpyNode, current);
    if (graph == NULL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (context != current) return FAKE_ERROR_INVALID_CONTEXT;
    CUresult result;
    fake_work *work = fake_work_copy(params, &result);
    return add_node(node, graph, behind, behind_count, work, result);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                              size_t behind_count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    FAKE_CONTEXT(cuGraphAddMemsetNode, current);
    if (graph == NULL || params == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (context != current) return FAKE_ERROR_INVALID_CONTEXT;
    CUresult result;
    fake_work *work = fake_work_fill(params, &result);
    return add_node(node, graph, behind, behind_count, work, result);
}

static void release_exec(CUgraphExec exec)
{
    if (atomic_fetch_sub(&exec->references, 1) != 1) return;
    fake_mark_release(exec->newest);
    pthread_mutex_destroy(&exec->lock);
    clear_graph(&exec->graph);
    for (uint32_t i = 0; i < exec->retired_count; i++) free(exec->retired[i]);
    free(exec->retired);
    free(exec);
}

static CUresult copy_node(CUgraph to, const struct CUgraphNode_st *from)
{
    CUgraphNode node = make_node(NULL, fake_work_clone(from->work), from->behind_count);
    if (node == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(node->behind, from->behind, from->behind_count * sizeof *from->behind);
    return append_node(to, node);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    FAKE_CONTEXT(cuGraphInstantiate, context);
    if (graph == NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec made = calloc(1, sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&made->references, 1);
    made->context = context;
    pthread_mutex_init(&made->lock, NULL);
    for (uint32_t i = 0; i < graph->count; i++) {
        const CUresult result = copy_node(&made->graph, graph->nodes[i]);
        if (result != CUDA_SUCCESS) {
            release_exec(made);
            return result;
        }
    }
    fake_count(FAKE_GRAPH_EXEC, 1);
    *exec = made;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    FAKE_CONTEXT_TO_DESTROY(cuGraphExecDestroy, context);
    if (exec == NULL) return FAKE_ERROR_INVALID_HANDLE;
    release_exec(exec);
    return fake_destroyed(FAKE_GRAPH_EXEC, context);
}

static CUresult retire_work(CUgraphExec exec, fake_work *work)
{
    if (exec->retired_count == exec->retired_capacity) {
        const uint32_t capacity = exec->retired_capacity * 2 + 8;
        fake_work **retired = realloc(exec->retired, capacity * sizeof(fake_work *));
        if (retired == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
        exec->retired = retired;
        exec->retired_capacity = capacity;
    }
    exec->retired[exec->retired_count++] = work;
    return CUDA_SUCCESS;
}

/* Of later launches; those before it have their own list of works. */
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    FAKE_CONTEXT(cuGraphExecKernelNodeSetParams, context);
    if (exec == NULL || exec->context != context) return FAKE_ERROR_INVALID_HANDLE;
    if (node == NULL || node->graph == NULL || node->index >= exec->graph.count ||
        node->work->kind != FAKE_KERNEL || params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result;
    fake_work *work = fake_work_kernel(params, &result);
    if (work == NULL) return result;
    pthread_mutex_lock(&exec->lock);
    CUgraphNode changed = exec->graph.nodes[node->index];
    result = retire_work(exec, changed->work);
    if (result == CUDA_SUCCESS) changed->work = work;
    pthread_mutex_unlock(&exec->lock);
    if (result != CUDA_SUCCESS) free(work);
    return result;
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    FAKE_CONTEXT(cuGraphUpload, context);
    FAKE_TRY(fake_stream_check(stream, context));
    return exec != NULL && exec->context == context ? CUDA_SUCCESS : FAKE_ERROR_INVALID_HANDLE;
}

static bool is_ready(const struct CUgraphNode_st *node, const bool *has_run)
{
    for (uint32_t i = 0; i < node->behind_count; i++) {
        if (!has_run[node->behind[i]]) return false;
    }
    return !has_run[node->index];
}

static void run_launch(fake_command *command)
{
    const launch_command *self = (launch_command *)command;
    fake_mark_wait(self->former);
    const struct CUgraph_st *graph = &self->exec->graph;
    bool *has_run = calloc(graph->count + 1, sizeof *has_run);
    if (has_run == NULL) abort();
    for (uint32_t left = graph->count; left > 0; left--) {
        uint32_t i = graph->count - 1;
        while (!is_ready(graph->nodes[i], has_run)) i--; /* edges lead to older nodes */
        fake_work_run(self->works[i], self->exec->context);
        has_run[i] = true;
    }
    free(has_run);
}

static void end_launch(fake_command *command)
{
    launch_command *self = (launch_command *)command;
    fake_mark_reach(self->own);
    fake_mark_release(self->own);
    fake_mark_release(self->former);
    release_exec(self->exec);
    free(self->works);
    free(self);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    FAKE_CONTEXT(cuGraphLaunch, context);
    FAKE_TRY(fake_stream_check(stream, context));
    if (exec == NULL || exec->context != context) return FAKE_ERROR_INVALID_HANDLE;
    fake_mark *own = fake_mark_create();
    launch_command *command = calloc(1, sizeof *command);
    fake_work **works = calloc(exec->graph.count + 1, sizeof(fake_work *));
    if (own == NULL || command == NULL || works == NULL) {
        fake_mark_release(own);
        free(command);
        free(works);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    atomic_fetch_add(&exec->references, 1);
    /* Pushed under the lock, so that the order of the marks is one that streams can execute. */
    pthread_mutex_lock(&exec->lock);
    for (uint32_t i = 0; i < exec->graph.count; i++) works[i] = exec->graph.nodes[i]->work;
    *command = (launch_command){
        {NULL, run_launch, end_launch}, exec, exec->newest, fake_mark_retain(own), works};
    exec->newest = own;
    const CUresult result = fake_stream_push(stream, &command->base);
    pthread_mutex_unlock(&exec->lock);
    return result;
}
