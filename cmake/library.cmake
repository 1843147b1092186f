# SPDX-License-Identifier: Apache-2.0
# libstreampool.so and libstreampool.a, from the same objects.
sp_layer_objects(objects)

# Before 1.0 a minor version may change the ABI, so the SONAME names it: libstreampool.so.0.1.
set(soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(soversion 0.${PROJECT_VERSION_MINOR})
endif()

add_library(sp_shared SHARED ${objects})
# nodelete: destructors of thread-local slots may run after dlclose.
target_link_options(sp_shared PRIVATE -Wl,-z,nodelete)
if(NOT SP_SANITIZE)
    # Reports a missing library here instead of in the user's link; sanitizers leave symbols undefined.
    target_link_options(sp_shared PRIVATE -Wl,-z,defs)
endif()
set_target_properties(sp_shared PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION ${soversion}
    EXPORT_NAME shared)

if(SP_SHARED_TESTS)
    # Calls stay within the library, as with hidden symbols. Not data, which programs may copy.
    target_link_options(sp_shared PRIVATE -Wl,-Bsymbolic-functions)
endif()
add_library(sp_static STATIC ${objects})
set_target_properties(sp_static PROPERTIES EXPORT_NAME static)

# The target names of the installed package, for parent projects too.
add_library(streampool::shared ALIAS sp_shared)
add_library(streampool::static ALIAS sp_static)

foreach(library sp_shared sp_static)
    set_target_properties(${library} PROPERTIES
        LINKER_LANGUAGE C
        OUTPUT_NAME streampool
        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
    target_include_directories(${library} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:include>)
    target_link_libraries(${library} PUBLIC Threads::Threads)
    if(SP_SANITIZE)
        target_link_options(${library} PRIVATE ${SP_SANITIZE_FLAGS})
    endif()
    if(SP_COVERAGE)
        target_link_options(${library} PRIVATE --coverage)
    endif()
endforeach()
