/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_report.h"

#include <stdio.h>

#include "text.h"

/* ---- what became of the runs ---- */

/* Between two moments. */
static sp_model_statistics statistics_between(const sp_model_statistics *before,
                                              const sp_model_statistics *after)
{
    sp_model_statistics between = {.runs = after->runs - before->runs,
                                   .waited = after->waited - before->waited,
                                   .wait_ns = after->wait_ns - before->wait_ns,
                                   .batches = after->batches - before->batches,
                                   .batched_runs = after->batched_runs - before->batched_runs};
    for (uint32_t rows = 0; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        between.batches_of[rows] = after->batches_of[rows] - before->batches_of[rows];
    }
    return between;
}

static void statistics_add(sp_model_statistics *sum, const sp_model_statistics *added)
{
    sum->runs += added->runs;
    sum->waited += added->waited;
    sum->wait_ns += added->wait_ns;
    sum->batches += added->batches;
    sum->batched_runs += added->batched_runs;
}

/* Runs by how many times the model was computed for them. */
static double runs_per_batch(const sp_model_statistics *statistics)
{
    const double runs = (double)statistics->runs;
    const double merged = (double)statistics->batched_runs;
    return runs > 0 ? runs / (runs - merged + (double)statistics->batches) : 1;
}

static double waited_share(const sp_model_statistics *statistics)
{
    return statistics->runs > 0 ? (double)statistics->waited / (double)statistics->runs : 0;
}

static double microseconds(uint64_t ns)
{
    return (double)ns / 1000;
}

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static double mean_wait_us(const sp_model_statistics *statistics)
{
    if (statistics->waited == 0) return 0;
    return microseconds(statistics->wait_ns) / (double)statistics->waited;
}

/* ---- rows ---- */

/* One row of output. */
typedef struct bench_row {
    const char *model;
    const model_runner *runner; /* NULL: the sum of all models */
    const bench_job *job;
    uint32_t threads;
    const load_result *result;
    sp_model_statistics statistics;
    double share; /* of the best rate of the points before */
} bench_row;

static void print_json_batches(const sp_model_statistics *statistics)
{
    const char *comma = "";
    printf(",\"batches\":{");
    for (uint32_t rows = 2; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        if (statistics->batches_of[rows] == 0) continue;
        printf("%s\"%u\":%llu", comma, rows, (unsigned long long)statistics->batches_of[rows]);
        comma = ",";
    }
    printf("}");
}

static void print_row_json(const bench_row *row)
{
    const load_result *result = row->result;
    const latencies *all = &result->latencies;
    printf("{\"model\":");
    print_json_text(row->model);
    printf(",\"threads\":%u,\"cores\":%.2f", row->threads, result->cores);
    printf(",\"load_ms\":%.3f,\"first_run_ms\":%.3f", milliseconds(row->runner->load_ns),
           milliseconds(row->runner->first_run_ns));
    printf(",\"rest_bytes\":%llu,\"peak_bytes\":%llu", (unsigned long long)row->job->rest_bytes,
           (unsigned long long)row->job->peak_bytes);
    printf(",\"per_second\":%.1f,\"share_of_best\":%.3f,\"runs_per_batch\":%.2f",
           result->per_second, row->share, runs_per_batch(&row->statistics));
    printf(",\"waited\":%.3f,\"mean_wait_us\":%.1f", waited_share(&row->statistics),
           mean_wait_us(&row->statistics));
    print_json_batches(&row->statistics);
    printf(",\"runs\":%llu,\"missed\":%llu", (unsigned long long)all->count,
           (unsigned long long)result->missed);
    printf(",\"mean_us\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}\n",
           all->count > 0 ? microseconds(all->sum_ns) / (double)all->count : 0,
           microseconds(latencies_percentile(all, 0.5)),
           microseconds(latencies_percentile(all, 0.99)),
           microseconds(latencies_percentile(all, 0.999)), microseconds(all->max_ns));
}

static void print_statistics(const sp_model_statistics *statistics)
{
    printf("%7s %.2f of the runs waited for a run slot, %.1f us on average", "",
           waited_share(statistics), mean_wait_us(statistics));
    const char *before = "; batches of";
    for (uint32_t rows = 2; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        if (statistics->batches_of[rows] == 0) continue;
        printf("%s %u: %llu", before, rows, (unsigned long long)statistics->batches_of[rows]);
        before = ",";
    }
    printf("\n");
}

static void print_row_text(const bench_row *row)
{
    const load_result *result = row->result;
    const latencies *all = &result->latencies;
    printf("%7u %12.1f %8.2f %7.1f %7.2f %11.1f %11.1f %11.1f %11.1f %9.1f  %s", row->threads,
           result->per_second, row->share, runs_per_batch(&row->statistics), result->cores,
           microseconds(latencies_percentile(all, 0.5)),
           microseconds(latencies_percentile(all, 0.99)),
           microseconds(latencies_percentile(all, 0.999)), microseconds(all->max_ns),
           megabytes(row->job->peak_bytes), show_name(row->model).text);
    if (result->missed > 0) {
        printf("  (%llu arrivals not served)", (unsigned long long)result->missed);
    }
    printf("\n");
}

static void print_row(const bench_format *format, const bench_row *row)
{
    if (format->is_json) {
        print_row_json(row);
        return;
    }
    print_row_text(row);
    if (format->has_statistics) print_statistics(&row->statistics);
}

/* ---- points ---- */

/* `best`: the highest rate of the points before; the rate as a share of it. */
static double share_of_best(double *best, double rate)
{
    const double share = *best > 0 ? rate / *best : 1;
    if (rate > *best) *best = rate;
    return share;
}

void bench_report_models(const bench_format *format, const bench_job *job)
{
    if (format->is_json) return;
    for (uint32_t m = 0; m < job->count; m++) {
        const model_runner *runner = &job->models[m].runner;
        printf("%s: loaded in %.1f ms, first run in %.1f ms\n",
               show_name(job->models[m].arguments.path).text, milliseconds(runner->load_ns),
               milliseconds(runner->first_run_ns));
    }
    printf("memory at rest: %.1f MB\n", megabytes(job->rest_bytes));
}

void bench_report_head(const bench_format *format)
{
    if (format->is_json) return;
    printf("%7s %12s %8s %7s %7s %11s %11s %11s %11s %9s  %s\n", "threads", "runs/s", "of best",
           "batch", "cores", "p50 us", "p99 us", "p99.9 us", "max us", "peak MB", "model");
}

void bench_report_point(const bench_format *format, bench_job *job, uint32_t threads)
{
    load_result total = {0};
    sp_model_statistics sum = {0};
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        const load_result *result = &model->result;
        const bench_row row = {.model = model->arguments.path,
                               .runner = &model->runner,
                               .job = job,
                               .threads = threads,
                               .result = result,
                               .statistics = statistics_between(&model->before, &model->after),
                               .share = share_of_best(&model->best, result->per_second)};
        print_row(format, &row);
        statistics_add(&sum, &row.statistics);
        latencies_merge(&total.latencies, &result->latencies);
        total.per_second += result->per_second;
        total.missed += result->missed;
        total.cores = result->cores;
    }
    if (job->count > 1 && !format->is_json) {
        print_row_text(&(bench_row){.model = "all",
                                    .job = job,
                                    .threads = threads,
                                    .result = &total,
                                    .statistics = sum,
                                    .share = share_of_best(&job->best, total.per_second)});
    }
}
