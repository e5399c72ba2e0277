# What `cmake --install` puts where: a tree that may be moved, since the program looks for its files beside itself
# (src/base/program_folder.h). `cpack` makes a Debian package of it.
include(GNUInstallDirs)
install(TARGETS sextant RUNTIME DESTINATION bin)
install(DIRECTORY machines configs DESTINATION share/sextant FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY docs/ DESTINATION share/doc/sextant FILES_MATCHING PATTERN "*.md")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION share/doc/sextant)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sextant)
set(CPACK_PACKAGE_CONTACT "The Sextant developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Plans, trains and watches large language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # its libraries become dependencies; needs dpkg-dev
set(CPACK_STRIP_FILES ON)
include(CPack)
