# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=<file> -DTO=<file> -P deflate.cmake: writes FROM as a deflate stream (RFC 1951): the line
# "#define SP_TEXT_BYTES <its bytes>", and the bytes of the stream as a C initializer list.
file(ARCHIVE_CREATE OUTPUT ${TO}.gz PATHS ${FROM} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
file(READ ${TO}.gz bytes HEX)
file(SIZE ${FROM} size)
# RFC 1952: a header of 10 bytes if its flags, the fourth, are 0; at the end checksum and size.
if(NOT bytes MATCHES "^1f8b0800............(.*)................$")
    message(FATAL_ERROR "${TO}.gz has another header than a member of gzip without a name")
endif()
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${CMAKE_MATCH_1}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${TO} "#define SP_TEXT_BYTES ${size}\n${bytes}\n")
