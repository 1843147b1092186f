# SPDX-License-Identifier: Apache-2.0
# The files of `cmake --install`: program with its manual page and completion, headers, libraries,
# pkg-config file, CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/streampool)

if(STREAMPOOL_BUILD_PROGRAM)
    install(TARGETS sp_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(FILES ${PROJECT_SOURCE_DIR}/docs/streampool.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    # bash finds the file by the command's name.
    install(FILES ${PROJECT_SOURCE_DIR}/docs/streampool.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME streampool)
endif()
install(TARGETS sp_shared sp_static EXPORT streampoolTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/streampool
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT streampoolTargets NAMESPACE streampool:: DESTINATION ${package_dir})
configure_package_config_file(cmake/streampoolConfig.cmake.in streampoolConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(streampoolConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    ${PROJECT_BINARY_DIR}/streampoolConfig.cmake
    ${PROJECT_BINARY_DIR}/streampoolConfigVersion.cmake
    DESTINATION ${package_dir})

# Relative to the file, so that an installed tree is relocatable and DESTDIR works.
file(RELATIVE_PATH pc_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/streampool.pc.in streampool.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/streampool.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
