# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=<file> -DTO=<file> -P shorten.cmake: writes a text in C without
# comments, indentation, empty lines, and spaces behind commas and around assignments. None of its
# string literals contains the start of a comment; in those of assembly such spaces have no meaning
# either.
file(READ ${FROM} text)
string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" "" text "${text}")
string(REGEX REPLACE " +(\\\\?\n)" " \\1" text "${text}")
string(REGEX REPLACE "[ \t]*\n[ \t\n]*" "\n" text "${text}")
string(REPLACE ", " "," text "${text}")
string(REGEX REPLACE "([]A-Za-z0-9_)]) = " "\\1=" text "${text}") # no other token ends in these
file(WRITE ${TO} "${text}")
