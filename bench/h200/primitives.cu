// SPDX-License-Identifier: Apache-2.0
// What the bare CUDA driver costs: the choices behind the cuda device kind, measured side by side in
// one process. Prints one JSON line per case: calls per second by threads (each with a stream of its
// own), or nanoseconds per call.
//
//   nvcc -O2 -arch=sm_90 -o primitives primitives.cu -lcuda -lpthread && ./primitives
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            const char *text_ = "?";                                                               \
            cuGetErrorString(result_, &text_);                                                     \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_);              \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

__global__ void scale(float *data, float factor)
{
    data[threadIdx.x] *= factor;
}

// The last kernel of a graph tells the host that the run is over.
__global__ void scale_and_tell(float *data, float factor, volatile uint64_t *word)
{
    data[threadIdx.x] *= factor;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *word = *word + 1;
    }
}

__global__ void read_host(const float *host, float *out)
{
    out[threadIdx.x] = host[threadIdx.x] + 1.0f;
}

static CUcontext context;
static CUfunction f_scale, f_tell, f_read;

static uint64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

static void pause_cpu()
{
    __builtin_ia32_pause();
}

enum Mode {
    LAUNCH_SYNC,       // kernel launch, cuStreamSynchronize
    GRAPH_SYNC,        // graph launch, cuStreamSynchronize
    GRAPH_EVENT,       // graph launch, event record, query until it is done
    GRAPH_EVENT_SYNC,  // graph launch, event record, cuEventSynchronize
    GRAPH_WRITE,       // graph launch, cuStreamWriteValue64, look at the word
    GRAPH_TELL,        // the graph's last kernel writes the word
    GRAPH_TELL_YIELD,  // the same; gives the processor up after 2 us of looking
    GRAPH_BATCH_NODE,  // the graph's last node is a memory operation on the word
    GRAPH_STAGED,      // copy in, kernel, copy out and tell, from and to pinned memory
    GRAPH_MAPPED,      // the kernel reads pinned host memory itself and tells
    GRAPH_SET_PARAMS,  // as GRAPH_TELL, with a node's parameters set before
    GRAPH_CHAIN,       // 12 kernels and tell
    MODES
};
static const char *const mode_names[MODES] = {
    "launch_stream_sync",    "graph_stream_sync",      "graph_event_query", "graph_event_sync",
    "graph_write_value",     "graph_tell",             "graph_tell_yield",  "graph_memop_node",
    "graph_staged_4k_tell",  "graph_mapped_4k_tell",   "graph_set_params_tell",
    "graph_12_kernels_tell",
};

static CUDA_KERNEL_NODE_PARAMS one_block(CUfunction function, void **args)
{
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = 256;
    params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = args;
    return params;
}

struct Worker {
    Mode mode;
    uint64_t until = 0;
    uint64_t calls = 0;
    CUstream stream;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUgraphNode node;
    CUevent event;
    CUdeviceptr data, scratch;
    float *host_in, *host_out;
    volatile uint64_t *word;
    CUdeviceptr word_device;
    uint64_t expected = 0;
    float factor = 1.0f;

    CUgraphNode add_kernel(CUfunction function, void **args, CUgraphNode *after)
    {
        const CUDA_KERNEL_NODE_PARAMS params = one_block(function, args);
        CUgraphNode made;
        CHECK(cuGraphAddKernelNode(&made, graph, after, after ? 1 : 0, &params));
        return made;
    }

    CUgraphNode add_copy(void *to_host, CUdeviceptr to, const void *from_host, CUdeviceptr from,
                         size_t bytes, CUgraphNode *after)
    {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        copy.srcHost = from_host;
        copy.srcDevice = from;
        copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        copy.dstHost = to_host;
        copy.dstDevice = to;
        copy.WidthInBytes = bytes;
        copy.Height = copy.Depth = 1;
        CUgraphNode made;
        CHECK(cuGraphAddMemcpyNode(&made, graph, after, after ? 1 : 0, &copy, context));
        return made;
    }

    void open(Mode m)
    {
        mode = m;
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        CHECK(cuMemAlloc(&data, 4096));
        CHECK(cuMemAlloc(&scratch, 4096));
        CHECK(cuMemsetD8(data, 0, 4096));
        void *pinned;
        CHECK(cuMemHostAlloc(&pinned, 4096 * 3, CU_MEMHOSTALLOC_DEVICEMAP));
        std::memset(pinned, 0, 4096 * 3);
        word = static_cast<volatile uint64_t *>(pinned);
        host_in = reinterpret_cast<float *>(static_cast<char *>(pinned) + 4096);
        host_out = reinterpret_cast<float *>(static_cast<char *>(pinned) + 8192);
        CHECK(cuMemHostGetDevicePointer(&word_device, pinned, 0));
        if (mode == LAUNCH_SYNC) return;
        CHECK(cuGraphCreate(&graph, 0));
        void *tell_args[] = {&data, &factor, &word_device};
        void *scale_args[] = {&data, &factor};
        CUdeviceptr in_device = word_device + 4096;
        void *read_args[] = {&in_device, &data};
        switch (mode) {
        case GRAPH_TELL:
        case GRAPH_TELL_YIELD:
        case GRAPH_SET_PARAMS: node = add_kernel(f_tell, tell_args, nullptr); break;
        case GRAPH_MAPPED: {
            CUgraphNode first = add_kernel(f_read, read_args, nullptr);
            add_kernel(f_tell, tell_args, &first);
            break;
        }
        case GRAPH_STAGED: {
            CUgraphNode in = add_copy(nullptr, data, host_in, 0, 4096, nullptr);
            CUgraphNode run = add_kernel(f_scale, scale_args, &in);
            CUgraphNode out = add_copy(host_out, 0, nullptr, data, 2048, &run);
            add_kernel(f_tell, tell_args, &out);
            break;
        }
        case GRAPH_CHAIN: {
            CUgraphNode last = add_kernel(f_scale, scale_args, nullptr);
            for (int i = 0; i < 10; i++) last = add_kernel(f_scale, scale_args, &last);
            add_kernel(f_tell, tell_args, &last);
            break;
        }
        case GRAPH_BATCH_NODE: {
            CUgraphNode run = add_kernel(f_scale, scale_args, nullptr);
            CUstreamBatchMemOpParams op{};
            op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
            op.writeValue.address = word_device;
            op.writeValue.value64 = 1;
            CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
            params.ctx = context;
            params.count = 1;
            params.paramArray = &op;
            CUgraphNode made;
            CHECK(cuGraphAddBatchMemOpNode(&made, graph, &run, 1, &params));
            break;
        }
        default: add_kernel(f_scale, scale_args, nullptr); break;
        }
        CHECK(cuGraphInstantiate(&exec, graph, 0));
        CHECK(cuGraphUpload(exec, stream));
        CHECK(cuStreamSynchronize(stream));
    }

    void look_until(uint64_t value, bool yields)
    {
        for (uint32_t turns = 0; *word != value; turns++) {
            if (yields && turns > 64) {
                sched_yield();
            } else {
                pause_cpu();
            }
        }
    }

    void once()
    {
        void *tell_args[] = {&data, &factor, &word_device};
        void *scale_args[] = {&data, &factor};
        switch (mode) {
        case LAUNCH_SYNC:
            CHECK(cuLaunchKernel(f_scale, 1, 1, 1, 256, 1, 1, 0, stream, scale_args, nullptr));
            CHECK(cuStreamSynchronize(stream));
            return;
        case GRAPH_SYNC:
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamSynchronize(stream));
            return;
        case GRAPH_EVENT:
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuEventRecord(event, stream));
            while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) pause_cpu();
            return;
        case GRAPH_EVENT_SYNC:
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuEventRecord(event, stream));
            CHECK(cuEventSynchronize(event));
            return;
        case GRAPH_WRITE:
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamWriteValue64(stream, word_device, ++expected,
                                       CU_STREAM_WRITE_VALUE_DEFAULT));
            look_until(expected, false);
            return;
        case GRAPH_BATCH_NODE:
            *word = 0;
            CHECK(cuGraphLaunch(exec, stream));
            look_until(1, false);
            return;
        case GRAPH_SET_PARAMS: {
            const CUDA_KERNEL_NODE_PARAMS params = one_block(f_tell, tell_args);
            CHECK(cuGraphExecKernelNodeSetParams(exec, node, &params));
            CHECK(cuGraphLaunch(exec, stream));
            look_until(++expected, false);
            return;
        }
        default:
            CHECK(cuGraphLaunch(exec, stream));
            look_until(++expected, mode == GRAPH_TELL_YIELD);
            return;
        }
    }

    void close()
    {
        CHECK(cuStreamSynchronize(stream));
        if (exec) CHECK(cuGraphExecDestroy(exec));
        if (graph) CHECK(cuGraphDestroy(graph));
        CHECK(cuEventDestroy(event));
        CHECK(cuMemFree(data));
        CHECK(cuMemFree(scratch));
        CHECK(cuMemFreeHost(const_cast<uint64_t *>(word)));
        CHECK(cuStreamDestroy(stream));
    }
};

static void *run_worker(void *arg)
{
    Worker *worker = static_cast<Worker *>(arg);
    CHECK(cuCtxSetCurrent(context));
    while (now_ns() < worker->until) {
        worker->once();
        worker->calls++;
    }
    return nullptr;
}

static double rate(Mode mode, int threads, double seconds)
{
    std::vector<Worker> workers(threads);
    for (Worker &worker : workers) worker.open(mode);
    for (Worker &worker : workers) {
        for (int i = 0; i < 20; i++) worker.once();
    }
    std::vector<pthread_t> handles(threads);
    const uint64_t start = now_ns();
    for (int i = 0; i < threads; i++) {
        workers[i].until = start + uint64_t(seconds * 1e9);
        pthread_create(&handles[i], nullptr, run_worker, &workers[i]);
    }
    uint64_t calls = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(handles[i], nullptr);
        calls += workers[i].calls;
    }
    const double elapsed = double(now_ns() - start) * 1e-9;
    for (Worker &worker : workers) worker.close();
    return double(calls) / elapsed;
}

template <typename Body> static void cost(const char *name, Body body)
{
    for (int i = 0; i < 100; i++) body();
    std::vector<double> rounds;
    for (int round = 0; round < 9; round++) {
        const int count = 500;
        const uint64_t start = now_ns();
        for (int i = 0; i < count; i++) body();
        rounds.push_back(double(now_ns() - start) / count);
        CHECK(cuCtxSynchronize());
    }
    std::sort(rounds.begin(), rounds.end());
    std::printf("{\"case\":\"%s\",\"ns\":%.0f}\n", name, rounds[4]);
    std::fflush(stdout);
}

static void single_calls()
{
    Worker a, b;
    a.open(GRAPH_EVENT);
    b.open(GRAPH_EVENT);
    CHECK(cuCtxSynchronize());
    void *args[] = {&a.data, &a.factor};
    cost("call_launch_kernel",
         [&] { CHECK(cuLaunchKernel(f_scale, 1, 1, 1, 256, 1, 1, 0, a.stream, args, nullptr)); });
    cost("call_graph_launch", [&] { CHECK(cuGraphLaunch(a.exec, a.stream)); });
    cost("call_event_record", [&] { CHECK(cuEventRecord(a.event, a.stream)); });
    cost("call_event_query", [&] { (void)cuEventQuery(a.event); });
    cost("call_stream_query", [&] { (void)cuStreamQuery(a.stream); });
    cost("call_write_value", [&] {
        CHECK(cuStreamWriteValue64(a.stream, a.word_device, ++a.expected,
                                   CU_STREAM_WRITE_VALUE_DEFAULT));
    });
    cost("call_stream_wait_event", [&] { CHECK(cuStreamWaitEvent(b.stream, a.event, 0)); });
    cost("call_wait_value", [&] {
        CHECK(cuStreamWaitValue64(b.stream, a.word_device, 1, CU_STREAM_WAIT_VALUE_GEQ));
    });
    cost("call_memcpy_htod_async_4k",
         [&] { CHECK(cuMemcpyHtoDAsync(a.data, a.host_in, 4096, a.stream)); });
    cost("call_memset_async_4k", [&] { CHECK(cuMemsetD32Async(a.data, 1, 1024, a.stream)); });
    cost("call_mem_alloc_free_4k", [&] {
        CUdeviceptr p;
        CHECK(cuMemAlloc(&p, 4096));
        CHECK(cuMemFree(p));
    });
    cost("call_ctx_set_current", [&] { CHECK(cuCtxSetCurrent(context)); });
    // A point of one stream that another waits for, then the host: the two ways to say it.
    cost("cross_stream_event_round_trip", [&] {
        CHECK(cuGraphLaunch(a.exec, a.stream));
        CHECK(cuEventRecord(a.event, a.stream));
        CHECK(cuStreamWaitEvent(b.stream, a.event, 0));
        CHECK(cuGraphLaunch(b.exec, b.stream));
        CHECK(cuStreamSynchronize(b.stream));
    });
    a.expected = *a.word + 1000000;
    cost("cross_stream_value_round_trip", [&] {
        CHECK(cuGraphLaunch(a.exec, a.stream));
        CHECK(cuStreamWriteValue64(a.stream, a.word_device, ++a.expected,
                                   CU_STREAM_WRITE_VALUE_DEFAULT));
        CHECK(cuStreamWaitValue64(b.stream, a.word_device, a.expected, CU_STREAM_WAIT_VALUE_GEQ));
        CHECK(cuGraphLaunch(b.exec, b.stream));
        CHECK(cuStreamSynchronize(b.stream));
    });
    a.close();
    b.close();
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 0.4;
    CHECK(cuInit(0));
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    char name[128];
    int driver = 0, memops = 0;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDriverGetVersion(&driver));
    CHECK(cuDeviceGetAttribute(&memops, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device));
    std::printf("{\"program\":\"primitives\",\"device\":\"%s\",\"driver\":%d,\"memops\":%d}\n", name,
                driver, memops);
    cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(&f_scale), (const void *)scale);
    cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(&f_tell), (const void *)scale_and_tell);
    cudaGetFuncBySymbol(reinterpret_cast<cudaFunction_t *>(&f_read), (const void *)read_host);
    single_calls();
    const int counts[] = {1, 8, 16, 31};
    for (int mode = 0; mode < MODES; mode++) {
        std::printf("{\"case\":\"%s\"", mode_names[mode]);
        for (int threads : counts) {
            std::printf(",\"%d\":%.0f", threads, rate(Mode(mode), threads, seconds));
        }
        std::printf("}\n");
        std::fflush(stdout);
    }
    return 0;
}
