/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_kernels.h"

#include <string.h>

#include "base/macros.h"
#include "ops/op_list.h"
#include "ops/registry.h"

static const char *op_kernels(const char *op)
{
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(ops[i].name, op) == 0) return ops[i].traits->kernels;
    }
    return "";
}

/* A pattern without its leading ?, if any. */
static sp_text pattern_unmarked(sp_text pattern)
{
    const size_t skipped = pattern.ptr[0] == '?';
    return (sp_text){pattern.ptr + skipped, pattern.len - skipped};
}

static bool pattern_matches(sp_text pattern, const char *name)
{
    pattern = pattern_unmarked(pattern);
    if (pattern.ptr[pattern.len - 1] != '*') return sp__text_is(pattern, name);
    const size_t stem = pattern.len - 1;
    return strncmp(pattern.ptr, name, stem) == 0 && name[stem] != '\0' &&
           strchr(name + stem, '_') == NULL;
}

static const char *kernel_name(sp_kernel_id kernel)
{
    return sp__cpu_kernels(SP_CPU_PORTABLE)[kernel].name; /* has all kernels */
}

static bool list_has_match(const char *list, const char *name)
{
    for (sp_text pattern; sp__op_list_next(&list, &pattern);) {
        if (pattern_matches(pattern, name)) return true;
    }
    return false;
}

bool sp__op_may_use(const char *op, sp_kernel_id kernel)
{
    const char *name = kernel_name(kernel);
    return list_has_match(op_kernels(op), name);
}

/* Is the kernel for one element type other than f32? */
static bool is_of_other_type(const char *kernel)
{
    static const sp_dtype dtypes[] = {
#define DTYPE(code, value, name, bytes) code,
        SP_DTYPE_LIST(DTYPE)
#undef DTYPE
    };
    const char *end = strrchr(kernel, '_');
    for (size_t i = 0; i < SP_COUNT_OF(dtypes) && end != NULL; i++) {
        if (strcmp(end + 1, sp_dtype_name(dtypes[i])) == 0) return dtypes[i] != SP_F32;
    }
    return false;
}

typedef struct kernel_count {
    uint32_t all, present;
} kernel_count;

/* Counts the kernels that match: in counts[1] those that f32 does not need, in counts[0] the
 * others. False if there are none. */
static bool count_matches(sp_text pattern, const sp_kernel *table, kernel_count counts[2])
{
    bool is_any = false;
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        const char *name = kernel_name((sp_kernel_id)i);
        if (!pattern_matches(pattern, name)) continue;
        kernel_count *count = &counts[pattern.ptr[0] == '?' || is_of_other_type(name)];
        count->all++;
        if (table == NULL || sp__kernel_is_there(&table[i])) count->present++;
        is_any = true;
    }
    return is_any;
}

/* A row with an unknown kernel name is never covered, so tests find it. */
bool sp__op_is_covered(const char *op, const sp_kernel *table)
{
    kernel_count counts[2] = {0};
    const char *kernels = op_kernels(op);
    for (sp_text pattern; sp__op_list_next(&kernels, &pattern);) {
        if (!count_matches(pattern, table, counts)) return false;
    }
    const kernel_count *needed = &counts[counts[0].all == 0];
    return needed->present == needed->all;
}

sp_op_coverage sp__op_coverage(const sp_kernel *table)
{
    sp_op_coverage coverage = {0};
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        /* The versions of an op are consecutive. */
        if (i > 0 && strcmp(ops[i].name, ops[i - 1].name) == 0) continue;
        coverage.op_count++;
        if (sp__op_is_covered(ops[i].name, table)) coverage.covered_count++;
    }
    return coverage;
}
