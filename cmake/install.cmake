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
install(PROGRAMS adapters/forward.py DESTINATION ${share_destination}/sextant/adapters)
install(DIRECTORY data DESTINATION ${share_destination}/sextant FILES_MATCHING PATTERN "*.csv" PATTERN "*.toml" PATTERN "*.md")
install(DIRECTORY docs/ DESTINATION ${share_destination}/doc/sextant FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${share_destination}/doc/sextant)

# Completions, manual pages and the schema of configs are the program's own output, made when it is installed.
set(made ${CMAKE_BINARY_DIR}/made_by_install)
install(CODE "
  file(MAKE_DIRECTORY \"${made}\")
  function(sextant_make file)  # ARGUMENTS…
    execute_process(COMMAND \"$<TARGET_FILE:sextant>\" \${ARGN} OUTPUT_FILE \"${made}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endfunction()
  sextant_make(sextant completions bash)
  sextant_make(_sextant completions zsh)
  sextant_make(sextant.fish completions fish)
  sextant_make(config.schema.json schema)
  sextant_make(pages man --all \"${made}/man1\")
")
install(FILES ${made}/sextant DESTINATION ${share_destination}/bash-completion/completions)
install(FILES ${made}/_sextant DESTINATION ${share_destination}/zsh/site-functions)
install(FILES ${made}/sextant.fish DESTINATION ${share_destination}/fish/vendor_completions.d)
install(FILES ${made}/config.schema.json DESTINATION ${share_destination}/sextant)
install(DIRECTORY ${made}/man1 DESTINATION ${share_destination}/man FILES_MATCHING PATTERN "*.1")

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
