/* SPDX-License-Identifier: Apache-2.0 */
/* What models give up for those who find no memory: plans and contexts can be made again. */
#include "exec/model_object.h"

/* A model of the device in a walk over all models, with a hold; NULL behind the last one. */
static sp_rt_model *next_of(const sp_rt_device *device, uint32_t *slot)
{
    sp_rt_model *model;
    while (sp__model_hold_slot((*slot)++, &model)) {
        if (model == NULL) continue;
        if (model->device == device) return model;
        sp__model_drop(model);
    }
    return NULL;
}

/* The model whose plan was not used for longest, with a hold; NULL if all plans are in use. */
static sp_rt_model *with_oldest_plan(const sp_rt_device *device)
{
    sp_rt_model *oldest = NULL;
    uint64_t oldest_use = UINT64_MAX;
    uint32_t slot = 0;
    for (sp_rt_model *model; (model = next_of(device, &slot)) != NULL;) {
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

static bool give_plan(const sp_rt_device *device)
{
    for (sp_rt_model *model; (model = with_oldest_plan(device)) != NULL;) {
        const bool is_given = sp__plan_cache_reclaim_plan(&model->plans);
        sp__model_drop(model);
        if (is_given) return true;
        /* Somebody uses it again: there may be another one. */
    }
    return false;
}

static bool release_context(const sp_rt_device *device)
{
    uint32_t slot = 0;
    for (sp_rt_model *model; (model = next_of(device, &slot)) != NULL;) {
        const bool is_given = sp__plan_cache_reclaim_context(&model->plans);
        sp__model_drop(model);
        if (is_given) return true;
    }
    return false;
}

bool sp__models_reclaim(sp_rt_device *device)
{
    return give_plan(device) || release_context(device);
}
