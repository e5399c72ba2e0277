# The version: the number of project() in CMakeLists.txt, and the commit. Written anew before every build, but only where it has
# changed, into the one source that has it: a commit recompiles a single small file.
set(version_source ${CMAKE_BINARY_DIR}/version/version.cpp)
set(version_command ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION} -DOUT=${version_source}
                    -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake)
execute_process(COMMAND ${version_command})
add_custom_target(write_version COMMAND ${version_command} BYPRODUCTS ${version_source} COMMENT "" VERBATIM)
add_library(sextant_version STATIC ${version_source})
add_dependencies(sextant_version write_version)
target_include_directories(sextant_version PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(sextant_version PRIVATE sextant_settings)
