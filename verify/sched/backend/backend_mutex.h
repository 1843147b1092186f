/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing of base/mutex.h is inline under the controlled scheduler. */
