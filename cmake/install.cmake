# What `cmake --install` puts where: a tree that may be moved, since the program looks for its files beside itself
# (src/base/program_folder.h). `cpack` makes a Debian package of it.
include(GNUInstallDirs)
# pip puts a wheel's scripts and data under the same prefix, an environment's bin and share (pyproject.toml).
set(program_destination bin)
set(share_destination share)
if(SKBUILD)
  set(program_destination ${SKBUILD_SCRIPTS_DIR})
  set(share_destination ${SKBUILD_DATA_DIR}/share)
endif()
install(TARGETS sextant RUNTIME DESTINATION ${program_destination})
install(DIRECTORY machines configs DESTINATION ${share_destination}/sextant FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY docs/ DESTINATION ${share_destination}/doc/sextant FILES_MATCHING PATTERN "*.md")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${share_destination}/doc/sextant)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sextant)
set(CPACK_PACKAGE_CONTACT "The Sextant developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Plans, trains and watches large language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # its libraries become dependencies; needs dpkg-dev
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)  # mpirun
set(CPACK_STRIP_FILES ON)
include(CPack)
