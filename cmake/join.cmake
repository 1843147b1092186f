# SPDX-License-Identifier: Apache-2.0
# cmake "-DFROM=<file>;..." -DTO=<file> -P join.cmake: writes the files one after the other, without
# the lines that include one of them in another.
set(whole "")
foreach(part IN LISTS FROM)
    file(READ ${part} text)
    string(REGEX REPLACE "#include \"[^\n]*\n" "" text "${text}")
    string(APPEND whole "${text}")
endforeach()
file(WRITE ${TO} "${whole}")
