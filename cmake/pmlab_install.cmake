# cmake --install: the headers, the files for find_package(pmlab) and pkg-config, and the programs where they are built.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/pmlab)
# Installed, the rooms are one include folder.
get_property(rooms GLOBAL PROPERTY PMLAB_ROOMS)
foreach(room IN LISTS rooms)
  get_property(folder GLOBAL PROPERTY PMLAB_ROOM_${room}_FOLDER)
  install(DIRECTORY ${folder}/include/pmlab DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
  install(TARGETS pmlab_room_${room} EXPORT pmlab)
endforeach()
foreach(component headers programs)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endforeach()
install(TARGETS pmlab EXPORT pmlab)
install(EXPORT pmlab NAMESPACE pmlab:: FILE pmlabTargets.cmake DESTINATION ${config_folder} COMPONENT headers)

configure_package_config_file(cmake/pmlabConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/pmlabConfig.cmake
                              INSTALL_DESTINATION ${config_folder} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change names: docs/embedding.md.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/pmlabConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pmlabConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/pmlabConfigVersion.cmake
              cmake/pmlab_media_libraries.cmake
        DESTINATION ${config_folder} COMPONENT headers)

# Relative, so that the prefix may be chosen when installing, and moved.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH up_to_prefix /${pkgconfig_folder} /)
foreach(package pmlab pmlab-pmem pmlab-jemalloc pmlab-uring)
  configure_file(cmake/${package}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${package}.pc DESTINATION ${pkgconfig_folder}
          COMPONENT headers)
endforeach()

# The libraries for PiBench: those that have been built. docs/pibench.md
get_property(libraries GLOBAL PROPERTY PMLAB_PIBENCH_LIBRARIES)
if(libraries)
  install(TARGETS ${libraries} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT pibench OPTIONAL)
endif()

# The SNIA Key Value Storage API. docs/kv-ssd.md
if(TARGET pmlab_kvssd)
  install(TARGETS pmlab_kvssd LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT kvssd)
endif()

# The programs find the files that they read beside them: bin/../lib/pmlab, bin/../share/pmlab.
if(TARGET pmlab_program)
  install(TARGETS pmlab_program DESTINATION bin COMPONENT programs)
  # Completion of bash, zsh and fish, and the manual page.
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/ DESTINATION share COMPONENT programs)
  # `pmlab run`, `merge`, `claims` and `report`, their data, and the trace that an experiment reads: as in the source
  # tree.
  install(DIRECTORY experiments DESTINATION share/pmlab COMPONENT programs
          FILES_MATCHING PATTERN "*.toml" PATTERN "*.py" PATTERN "Snakefile" PATTERN "*.yaml"
          PATTERN "__pycache__" EXCLUDE)
  install(FILES tests/data/ycsb-a.load.txt tests/data/ycsb-a.run.txt DESTINATION share/pmlab/tests/data
          COMPONENT programs)
  install(FILES indexes/indexes.json DESTINATION share/pmlab/indexes COMPONENT programs)
endif()
if(TARGET pmlab_simulated_program)
  install(TARGETS pmlab_simulated_program DESTINATION bin COMPONENT programs)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/lib/pmlab DESTINATION lib COMPONENT programs USE_SOURCE_PERMISSIONS)
endif()
