# SPDX-License-Identifier: Apache-2.0
# SP_PLANT names a planted bug. SP_PLANT_<name> is defined only for the sources that contain it or
# include a header that contains it, so that changing the plant rebuilds few files.
if(NOT SP_PLANT)
    return()
endif()

# sp_plant(SOURCE): defines SP_PLANT_<name> for a source, in the folder that lists it.
function(sp_plant source)
    set(folder ${source})
    while(NOT EXISTS ${folder}/CMakeLists.txt)
        cmake_path(GET folder PARENT_PATH folder)
    endwhile()
    set_property(SOURCE ${source} DIRECTORY ${folder} APPEND PROPERTY
        COMPILE_DEFINITIONS SP_PLANT_${SP_PLANT}=1)
endfunction()

file(GLOB_RECURSE sp_plant_headers RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.h)
set(sp_plant_pattern "SP_PLANTED\\(${SP_PLANT}\\)")
foreach(header IN LISTS sp_plant_headers)
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/${header} uses REGEX ${sp_plant_pattern})
    if(uses)
        string(APPEND sp_plant_pattern "|#include \"${header}\"")
    endif()
endforeach()
file(GLOB_RECURSE sources ${PROJECT_SOURCE_DIR}/src/*.c)
foreach(source IN LISTS sources)
    file(STRINGS ${source} uses REGEX ${sp_plant_pattern})
    if(uses)
        sp_plant(${source})
    endif()
endforeach()
