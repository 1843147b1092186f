/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

#include <stddef.h>

#include "base/macros.h"

#define TABLE(part) sp__subjects_##part,
static const sp_subject *const tables[] = {SP_SUBJECT_TABLES(TABLE)};

const sp_subject *sp__subject_at(uint32_t index)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(tables); i++) {
        for (const sp_subject *subject = tables[i]; subject->name != NULL; subject++) {
            if (index-- == 0) return subject;
        }
    }
    return NULL;
}
