# Installation: library, headers, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fxcpp)

install(TARGETS fxcpp EXPORT fxcppTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/fx" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT fxcppTargets NAMESPACE fxcpp:: DESTINATION ${_package_dir})

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/fxcppConfig.cmake.in" "${PROJECT_BINARY_DIR}/fxcppConfig.cmake"
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/fxcppConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
# From the folder of the .pc file up to the prefix, so that the installed tree can be moved.
file(RELATIVE_PATH _fxcpp_pc_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/cmake/fxcpp.pc.in" "${PROJECT_BINARY_DIR}/fxcpp.pc" @ONLY)
install(FILES
  "${PROJECT_BINARY_DIR}/fxcppConfig.cmake"
  "${PROJECT_BINARY_DIR}/fxcppConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindLibTorch.cmake"
  DESTINATION ${_package_dir})
install(FILES "${PROJECT_BINARY_DIR}/fxcpp.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
