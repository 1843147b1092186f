/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions of internal invariants, in debug builds. Bad input never asserts: it gets a status. */
#ifndef SP_BASE_ASSERT_H
#define SP_BASE_ASSERT_H

/* Prints the broken invariant and aborts; under the controlled scheduler the run has then failed.
 */
_Noreturn void sp__assert_failed(const char *file, int line, const char *expression);

#if defined(NDEBUG)
#define SP_ASSERT(expression) ((void)sizeof(!(expression)))
#else
#define SP_ASSERT(expression)                                                                      \
    ((expression) ? (void)0 : sp__assert_failed(__FILE__, __LINE__, #expression))
#endif

#endif
