# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=<file> -DTO=<file> -P shorten.cmake: writes a text in C without comments, indentation
# and empty lines. None of its string literals contains the start of a comment.
file(READ ${FROM} text)
string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" "" text "${text}")
string(REGEX REPLACE " +(\\\\?\n)" " \\1" text "${text}")
string(REGEX REPLACE "[ \t]*\n[ \t\n]*" "\n" text "${text}")
file(WRITE ${TO} "${text}")
