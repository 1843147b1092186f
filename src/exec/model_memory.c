/* SPDX-License-Identifier: Apache-2.0 */
/* Reclaim: evicts plans and destroys contexts of models when memory is short; both can be created
 * again. */
#include "exec/model_object.h"

/* The device's next model in an iteration over all models, with a hold; NULL past the last one. */
static sp_rt_model *model_next(const sp_rt_device *device, uint32_t *slot)
{
    sp_rt_model *model;
    while (sp__model_hold_slot((*slot)++, &model)) {
        if (model == NULL) continue;
        if (model->device == device) return model;
        sp__model_drop(model);
    }
    return NULL;
}

/* The model with the least recently used plan, with a hold; NULL if all plans are in use. */
static sp_rt_model *model_with_oldest_plan(const sp_rt_device *device)
{
    sp_rt_model *oldest = NULL;
    uint64_t oldest_use = UINT64_MAX;
    uint32_t slot = 0;
    for (sp_rt_model *model; (model = model_next(device, &slot)) != NULL;) {
        const uint64_t use = sp__plan_cache_oldest_use(&model->plans);
        sp_rt_model *other = model;
        if (use < oldest_use) {
            other = oldest;
            oldest = model;
            oldest_use = use;
        }
        if (other != NULL) sp__model_drop(other);
    }
    return oldest;
}

static bool plan_reclaim(const sp_rt_device *device)
{
    for (sp_rt_model *model; (model = model_with_oldest_plan(device)) != NULL;) {
        const bool is_reclaimed = sp__plan_cache_reclaim_plan(&model->plans);
        sp__model_drop(model);
        if (is_reclaimed) return true;
        /* That plan is in use again: look for another one. */
    }
    return false;
}

/* Calls `reclaim` for the plans of all models until it has freed something. */
static bool plans_reclaim(const sp_rt_device *device, bool (*reclaim)(sp_plan_cache *plans))
{
    uint32_t slot = 0;
    for (sp_rt_model *model; (model = model_next(device, &slot)) != NULL;) {
        const bool is_reclaimed = reclaim(&model->plans);
        sp__model_drop(model);
        if (is_reclaimed) return true;
    }
    return false;
}

bool sp__models_reclaim(sp_rt_device *device)
{
    return plans_reclaim(device, sp__plan_cache_reclaim_extra) || plan_reclaim(device) ||
           plans_reclaim(device, sp__plan_cache_reclaim_context);
}
