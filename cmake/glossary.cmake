# docs/glossary.md, compiled in: by it the config answers to the names of other programs.
set(glossary_page ${CMAKE_SOURCE_DIR}/docs/glossary.md)
set(glossary_source ${CMAKE_BINARY_DIR}/config/glossary_text.cpp)
add_custom_command(OUTPUT ${glossary_source}
  COMMAND ${CMAKE_COMMAND} -DPAGE=${glossary_page} -DOUT=${glossary_source} -P ${CMAKE_SOURCE_DIR}/cmake/embed_glossary.cmake
  DEPENDS ${glossary_page} ${CMAKE_SOURCE_DIR}/cmake/embed_glossary.cmake
  VERBATIM)
target_sources(sextant_config PRIVATE ${glossary_source})
