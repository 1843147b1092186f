// SPDX-License-Identifier: Apache-2.0
// A C++ program that has only the installed files.
#include <cstdio>
#include <cstring>

#include <streampool/log.h>
#include <streampool/streampool.h>

int main()
{
    sp_log_set_level(SP_LOG_OFF);
    if (std::strcmp(sp_status_name(SP_INVALID), "SP_INVALID") != 0) return 1;
    if (std::strcmp(sp_last_error(), "") != 0) return 1;
    std::printf("%s: %s\n", sp_status_name(SP_OK), sp_status_text(SP_OK));
    return 0;
}
