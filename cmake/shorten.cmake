# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=<file> -DTO=<file> [-DWORDS=<file>] -P shorten.cmake: writes a text in C without
# comments, indentation, empty lines, and spaces behind commas and around assignments. None of its
# string literals contains the start of a comment; in those of assembly such spaces have no meaning
# either. Texts that WORDS lists, as W('letter', "text"), become '$' and the letter or digit.
file(READ ${FROM} text)
string(REGEX REPLACE "/[*]([^*]|[*]+[^*/])*[*]+/" "" text "${text}")
string(REGEX REPLACE " +(\\\\?\n)" " \\1" text "${text}")
string(REGEX REPLACE "[ \t]*\n[ \t\n]*" "\n" text "${text}")
string(REPLACE ", " "," text "${text}")
string(REGEX REPLACE "([]A-Za-z0-9_)]) = " "\\1=" text "${text}") # no other token ends in these
if(WORDS)
    if(text MATCHES "[$]")
        message(FATAL_ERROR "${FROM} has a '$', which begins a word of ${WORDS}")
    endif()
    file(READ ${WORDS} words)
    string(REGEX MATCHALL "W[(]'[0-9A-Za-z]', \"[^\"]*\"[)]" words "${words}")
    foreach(word IN LISTS words)
        string(REGEX MATCH "W[(]'([0-9A-Za-z])', \"([^\"]*)\"[)]" word "${word}")
        string(REPLACE "${CMAKE_MATCH_2}" "$${CMAKE_MATCH_1}" text "${text}")
    endforeach()
    if(text MATCHES "[$]([^0-9A-Za-z]|$)")
        message(FATAL_ERROR "a word of ${WORDS} begins with the letter of another")
    endif()
endif()
file(WRITE ${TO} "${text}")
