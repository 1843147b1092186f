/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of one type. Parameters: SP_TYPE; SP_IS_MORE(a, b). */

/* Does element `a` come before element `b`? */
static SP_ALWAYS_INLINE bool SP_OF(is_before)(const line *l, int64_t a, int64_t b)
{
    const SP_ELEMENT x = ((const SP_ELEMENT *)l->x)[a * l->stride];
    const SP_ELEMENT y = ((const SP_ELEMENT *)l->x)[b * l->stride];
    const bool is_more = SP_IS_MORE(x, y), is_less = SP_IS_MORE(y, x);
    if (is_more || is_less) return l->is_largest ? is_more : is_less;
    return a < b;
}

/* Sifts index `item` down from `root` in a heap of `n`. */
static void SP_OF(sift)(const line *l, int64_t root, int64_t n, int64_t item)
{
    for (int64_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        const int64_t other = child + 1;
        if (other < n && SP_OF(is_before)(l, l->at[child * l->stride], l->at[other * l->stride])) {
            child = other;
        }
        if (!SP_OF(is_before)(l, item, l->at[child * l->stride])) break;
        l->at[root * l->stride] = l->at[child * l->stride];
        root = child;
    }
    l->at[root * l->stride] = item;
}

static void SP_OF(run)(const line *l, int64_t count, int64_t axis, void *values)
{
    for (int64_t i = 0; i < count; i++) l->at[i * l->stride] = i;
    for (int64_t i = count / 2; i-- > 0;) SP_OF(sift)(l, i, count, l->at[i * l->stride]);
    for (int64_t i = count; i < axis; i++) {
        if (SP_OF(is_before)(l, i, l->at[0])) SP_OF(sift)(l, 0, count, i);
    }
    for (int64_t n = count - 1; n > 0; n--) {
        const int64_t last = l->at[n * l->stride];
        l->at[n * l->stride] = l->at[0];
        SP_OF(sift)(l, 0, n, last);
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy((SP_ELEMENT *)values + i * l->stride,
               (const SP_ELEMENT *)l->x + l->at[i * l->stride] * l->stride, sizeof(SP_ELEMENT));
    }
}

#undef SP_IS_MORE
#undef SP_TYPE
