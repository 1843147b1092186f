# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=<file> -DTO=<file> -P embed.cmake: writes the bytes of FROM as a C initializer list.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "${bytes}\n")
