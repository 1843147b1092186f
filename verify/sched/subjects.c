/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subjects, listed by hand. */
#include "subject.h"

#define DECLARE(name) void name(void *arg)

/* verify/subjects/subject_tagged_stack.c */
DECLARE(sp__subject_tagged_stack_2);
DECLARE(sp__subject_tagged_stack_3);
/* verify/subjects/subject_handle.c */
DECLARE(sp__subject_handle_release);
DECLARE(sp__subject_handle_publish);
DECLARE(sp__subject_handle_reuse);
DECLARE(sp__subject_handle_retain);

const sp_subject sp__subjects[] = {
    {.name = "tagged_stack_2",
     .test = sp__subject_tagged_stack_2,
     .thread_count = 2,
     .planted = "aba relaxed_pop relaxed_push",
     .must_exhaust = true},
    {.name = "tagged_stack_3",
     .test = sp__subject_tagged_stack_3,
     .thread_count = 3,
     .planted = "aba relaxed_pop relaxed_push"},
    {.name = "handle_release",
     .test = sp__subject_handle_release,
     .thread_count = 2,
     .must_exhaust = true},
    {.name = "handle_publish",
     .test = sp__subject_handle_publish,
     .thread_count = 2,
     .must_exhaust = true},
    {.name = "handle_retain", .test = sp__subject_handle_retain, .thread_count = 3},
    {.name = "handle_reuse", .test = sp__subject_handle_reuse, .thread_count = 3},
};

const uint32_t sp__subject_count = sizeof sp__subjects / sizeof sp__subjects[0];
