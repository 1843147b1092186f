# SPDX-License-Identifier: Apache-2.0
# SP_PLANT names a planted bug. SP_PLANT_<name> is defined for the sources that have it alone, so that a
# build that goes from one plant to the next compiles little; for all of them if a header has it.
if(NOT SP_PLANT)
    return()
endif()

file(GLOB_RECURSE sp_plant_files ${PROJECT_SOURCE_DIR}/src/*.c ${PROJECT_SOURCE_DIR}/src/*.h)
foreach(file IN LISTS sp_plant_files)
    file(STRINGS ${file} uses REGEX "SP_PLANTED\\(${SP_PLANT}\\)")
    if(uses AND file MATCHES "\\.h$")
        target_compile_definitions(sp_flags INTERFACE SP_PLANT_${SP_PLANT}=1)
    elseif(uses)
        # A source belongs to the folder of its layer.
        string(REGEX REPLACE "^(${PROJECT_SOURCE_DIR}/src/[a-z]+)/.*" "\\1" layer ${file})
        set_property(SOURCE ${file} DIRECTORY ${layer} APPEND PROPERTY
            COMPILE_DEFINITIONS SP_PLANT_${SP_PLANT}=1)
    endif()
endforeach()
