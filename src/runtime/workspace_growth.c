/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workspace_growth.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "runtime/allocator.h"

/* A part that a workspace gets next. */
typedef struct part_growth {
    sp_workspaces *workspaces;
    sp_workspace *workspace;
    sp_workspace_part *part;
    bool is_takers; /* else it is taken for the call of the driver alone */
} part_growth;

static bool growth_take(const part_growth *growth)
{
    sp_workspace *workspace = growth->workspace;
    if (growth->is_takers) return true;
    sp_mutex_lock(&growth->workspaces->lock);
    const bool is_taken = !workspace->is_taken && workspace->mapped == growth->part->offset;
    if (is_taken) workspace->is_taken = true;
    sp_mutex_unlock(&growth->workspaces->lock);
    return is_taken;
}

static sp_status part_map(void *ctx)
{
    const part_growth *growth = ctx;
    sp_workspace *workspace = growth->workspace;
    sp_workspace_part *part = growth->part;
    if (!growth_take(growth)) return sp__fail(SP_BUSY, "another thread has the workspace");
    const sp_status status =
        part->range->device->vtable->range_map(part->range, part->offset, part->bytes);
    if (status == SP_OK) {
        part->next = workspace->parts;
        workspace->parts = part;
    }
    sp_mutex_lock(&growth->workspaces->lock);
    if (status == SP_OK) workspace->mapped = part->offset + part->bytes;
    if (!growth->is_takers) workspace->is_taken = false;
    sp_mutex_unlock(&growth->workspaces->lock);
    return status;
}

static sp_status range_make(sp_workspace *workspace, sp_dev *dev)
{
    if (workspace->range.address != NULL) return SP_OK;
    uint64_t bytes;
    if (!sp_size_align(dev->limits.memory_bytes, dev->limits.range_unit, &bytes)) {
        return sp__fail(SP_OUT_OF_MEMORY, "the memory of %s exceeds any range", dev->limits.name);
    }
    return dev->vtable->range_create(dev, bytes, &workspace->range);
}

static sp_status workspace_add_part(sp_workspaces *workspaces, sp_workspace *workspace,
                                    const sp_workspace_growth *growth, uint64_t mapped,
                                    sp_uncut_request request)
{
    sp_workspace_part *part = sp_malloc(sizeof *part);
    if (part == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a workspace");
    *part = (sp_workspace_part){
        .range = &workspace->range, .offset = growth->from, .bytes = mapped - growth->from};
    part_growth next = {workspaces, workspace, part, growth->is_takers};
    const sp_status status =
        sp__allocator_create_uncut(workspaces->allocator, part->bytes, request, part_map, &next);
    if (status != SP_OK) sp_free(part);
    return status;
}

sp_status sp__workspace_growth_plan(sp_workspaces *workspaces, sp_workspace *workspace,
                                    uint64_t bytes, sp_workspace_growth *out)
{
    sp_dev *dev = workspaces->allocator->dev;
    uint32_t size_class;
    out->from = workspace->mapped;
    SP_TRY(range_make(workspace, dev));
    const bool fits = sp_size_align(bytes, dev->limits.range_unit, &out->least) &&
                      out->least <= workspace->range.bytes;
    if (!fits || !sp__size_class_of(out->least, &size_class, &out->rounded)) {
        return sp__fail(SP_OUT_OF_MEMORY, "%llu bytes exceed the memory of %s",
                        (unsigned long long)bytes, dev->limits.name);
    }
    const bool is_large = sp_size_align(out->rounded, dev->limits.range_unit, &out->rounded) &&
                          out->rounded <= workspace->range.bytes;
    if (!is_large) out->rounded = out->least;
    return SP_OK;
}

sp_status sp__workspace_grow(sp_workspaces *workspaces, sp_workspace *workspace,
                             const sp_workspace_growth *growth)
{
    if (growth->rounded > growth->least) {
        const sp_status status =
            workspace_add_part(workspaces, workspace, growth, growth->rounded, SP_UNCUT_SPARE);
        if (status != SP_OUT_OF_MEMORY) return status;
    }
    return workspace_add_part(workspaces, workspace, growth, growth->least, growth->request);
}

void sp__workspace_put_back(sp_workspaces *workspaces, sp_workspace *workspace)
{
    sp_mutex_lock(&workspaces->lock);
    workspace->is_taken = false;
    sp_mutex_unlock(&workspaces->lock);
}

void sp__workspace_parts_destroy(sp_workspaces *workspaces, sp_workspace_part *part)
{
    while (part != NULL) {
        sp_workspace_part *next = part->next;
        part->range->device->vtable->range_unmap(part->range, part->offset, part->bytes);
        sp__allocator_note_uncut_destroyed(workspaces->allocator, part->bytes);
        sp_free(part);
        part = next;
    }
}
