/* SPDX-License-Identifier: Apache-2.0 */
/* A C program that uses only the installed files. */
#include <stdio.h>
#include <string.h>

#include <streampool/streampool.h>

int main(void)
{
    if (strcmp(sp_status_name(SP_INVALID), "SP_INVALID") != 0) return 1;
    if (strcmp(sp_last_error(), "") != 0) return 1;
    printf("%s: %s\n", sp_status_name(SP_OK), sp_status_text(SP_OK));
    return 0;
}
