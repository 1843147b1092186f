/* SPDX-License-Identifier: Apache-2.0 */
/* Delay injector: test builds sleep for seeded, random times at every transfer of ownership,
 * publish and completion, which widens race windows. Other builds compile it away. */
#ifndef SP_BASE_DELAY_H
#define SP_BASE_DELAY_H

#include <stdint.h>

#if defined(SP_DELAYS)
/* Marks a place for a delay. */
void sp_delay_point(void);
/* `per_mille` of the calls of sp_delay_point sleep, up to `max_ns`; 0 turns delays off (default).
 */
void sp_delay_configure(uint64_t seed, uint32_t per_mille, uint64_t max_ns);
#else
static inline void sp_delay_point(void) {}
static inline void sp_delay_configure(uint64_t seed, uint32_t per_mille, uint64_t max_ns)
{
    (void)seed, (void)per_mille, (void)max_ns;
}
#endif

#endif
