/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_steps.h"
#include "output.h"
#include "text.h"

/* A step, or all steps of an op type. */
typedef struct cost {
    const char *op;
    uint32_t steps;
    double us;
    uint64_t multiply_adds;
} cost;

/* ---- figures ---- */

static double share_of_run(const bench_steps *steps, const cost *what)
{
    return steps->us > 0 ? what->us / steps->us : 0;
}

/* Two operations a multiply-add. 0: none are counted. */
static double gflops(const cost *what)
{
    return what->us > 0 ? 2.0 * (double)what->multiply_adds / what->us / 1000 : 0;
}

static double share_of_peak(const bench_steps *steps, const cost *what)
{
    return gflops(what) / steps->peak.gflops;
}

static cost cost_of_step(const bench_step *step)
{
    return (cost){step->info.op, 1, step->us, step->info.multiply_adds};
}

static cost cost_of_run(const bench_steps *steps)
{
    cost sum = {.op = "all", .steps = steps->count, .us = steps->us};
    for (uint32_t s = 0; s < steps->count; s++) {
        sum.multiply_adds += steps->list[s].info.multiply_adds;
    }
    return sum;
}

/* ---- op types ---- */

static cost *op_find(cost *ops, uint32_t *count, const char *name)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(ops[i].op, name) == 0) return &ops[i];
    }
    ops[*count] = (cost){.op = name};
    return &ops[(*count)++];
}

static int compare_costs(const void *a, const void *b)
{
    const double x = ((const cost *)a)->us, y = ((const cost *)b)->us;
    return (x < y) - (x > y);
}

/* Sums by op type, the longest first. `ops` has room for all steps. */
static uint32_t ops_sum(const bench_steps *steps, cost *ops)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < steps->count; s++) {
        const cost step = cost_of_step(&steps->list[s]);
        cost *op = op_find(ops, &count, step.op);
        op->steps++;
        op->us += step.us;
        op->multiply_adds += step.multiply_adds;
    }
    qsort(ops, count, sizeof *ops, compare_costs);
    return count;
}

/* ---- text ---- */

static void print_cost(const bench_steps *steps, const cost *what)
{
    printf(" %10.2f %6.1f %%", what->us, 100 * share_of_run(steps, what));
    if (what->multiply_adds == 0) printf(" %9s %9s", "", "");
    else printf(" %9.1f %7.1f %%", gflops(what), 100 * share_of_peak(steps, what));
}

static void print_op(const bench_steps *steps, const cost *op)
{
    printf("%5u", op->steps);
    print_cost(steps, op);
    printf("  %s\n", op->op);
}

static void print_text(const bench_steps *steps, const cost *ops, uint32_t op_count)
{
    const cost all = cost_of_run(steps);
    printf("%s: %u steps on one thread, medians of %u runs; a core has a peak of %.1f GFLOP/s "
           "(%s)\n",
           show_name(steps->model->arguments.path).text, steps->count, steps->runs,
           steps->peak.gflops, steps->peak.instruction_set);
    printf("%5s %10s %8s %9s %9s  %-20s %s\n", "step", "us", "share", "GFLOP/s", "of peak", "op",
           "node");
    for (uint32_t s = 0; s < steps->count; s++) {
        const cost step = cost_of_step(&steps->list[s]);
        printf("%5u", s);
        print_cost(steps, &step);
        printf("  %-20s %s\n", step.op, show_name(steps->list[s].info.node).text);
    }
    printf("%5s %10s %8s %9s %9s  %s\n", "steps", "us", "share", "GFLOP/s", "of peak", "op type");
    for (uint32_t i = 0; i < op_count; i++) print_op(steps, &ops[i]);
    print_op(steps, &all);
}

/* ---- JSON ---- */

static void print_model_json(const bench_steps *steps)
{
    printf("{\"model\":");
    print_json_text(steps->model->arguments.path);
}

static void print_cost_json(const bench_steps *steps, const cost *what)
{
    printf(",\"op\":");
    print_json_text(what->op);
    printf(",\"us\":%.3f,\"share\":%.4f,\"multiply_adds\":%llu,\"gflops\":%.2f,"
           "\"share_of_peak\":%.4f",
           what->us, share_of_run(steps, what), (unsigned long long)what->multiply_adds,
           gflops(what), share_of_peak(steps, what));
}

static void print_json(const bench_steps *steps, const cost *ops, uint32_t op_count)
{
    for (uint32_t s = 0; s < steps->count; s++) {
        const cost step = cost_of_step(&steps->list[s]);
        print_model_json(steps);
        printf(",\"step\":%u", s);
        print_cost_json(steps, &step);
        printf(",\"kernel\":");
        print_json_text(steps->list[s].info.kernel);
        printf(",\"node\":");
        print_json_text(steps->list[s].info.node);
        printf("}\n");
    }
    for (uint32_t i = 0; i < op_count; i++) {
        print_model_json(steps);
        printf(",\"steps\":%u", ops[i].steps);
        print_cost_json(steps, &ops[i]);
        printf("}\n");
    }
    const cost all = cost_of_run(steps);
    print_model_json(steps);
    printf(",\"steps\":%u,\"timed_runs\":%u,\"peak_gflops\":%.1f,\"instruction_set\":\"%s\"",
           steps->count, steps->runs, steps->peak.gflops, steps->peak.instruction_set);
    print_cost_json(steps, &all);
    printf("}\n");
}

sp_status bench_steps_report(const bench_format *format, const bench_steps *steps)
{
    cost *ops = calloc((size_t)steps->count + 1, sizeof *ops);
    if (ops == NULL)
        return fail(SP_OUT_OF_MEMORY, "no memory for the ops of %u steps", steps->count);
    const uint32_t count = ops_sum(steps, ops);
    if (format->is_json) print_json(steps, ops, count);
    else print_text(steps, ops, count);
    (void)output_flush();
    free(ops);
    return SP_OK;
}
