# The page of `watch`, compiled in: its scripts in the order in which they are joined.
set(page_folder ${CMAKE_SOURCE_DIR}/src/watch/page)
set(page_scripts format.js source.js scale.js painter.js tip.js thinned_path.js chart.js heatmap.js ops.js compare.js controls.js view.js app.js)
set(page_source ${CMAKE_BINARY_DIR}/watch/page_files.cpp)
string(REPLACE ";" " " page_script_words "${page_scripts}")
list(TRANSFORM page_scripts PREPEND ${page_folder}/)
add_custom_command(OUTPUT ${page_source}
  COMMAND ${CMAKE_COMMAND} -DPAGE=${page_folder} "-DSCRIPTS=${page_script_words}" -DOUT=${page_source}
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${page_scripts} ${page_folder}/page.html ${page_folder}/page.css ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
  VERBATIM)
target_sources(sextant_watch PRIVATE ${page_source})
