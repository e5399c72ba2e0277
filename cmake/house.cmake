# sextant_room(FOLDER [NEEDS rooms…] [PUBLIC libs…] [PRIVATE libs…]): src/FOLDER/*.cpp becomes the library
# sextant_FOLDER (exec/cpu becomes sextant_exec_cpu). Sources are globbed: a new op is a new file, not a new list entry.

find_package(Threads REQUIRED)

add_library(sextant_settings INTERFACE)
target_include_directories(sextant_settings INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(sextant_settings INTERFACE Threads::Threads)
target_compile_options(sextant_settings INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wno-missing-field-initializers>
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)  # GCC 12 gives false -Wrestrict warnings in std::string
if(SEXTANT_SANITIZE)
  target_compile_options(sextant_settings INTERFACE -fsanitize=${SEXTANT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sextant_settings INTERFACE -fsanitize=${SEXTANT_SANITIZE})
endif()

function(sextant_room folder)
  cmake_parse_arguments(ROOM "" "" "NEEDS;PUBLIC;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  if(NOT sources)
    add_library(sextant_${name} INTERFACE)
    target_link_libraries(sextant_${name} INTERFACE sextant_settings ${ROOM_PUBLIC})
    foreach(need ${ROOM_NEEDS})
      string(REPLACE "/" "_" need ${need})
      target_link_libraries(sextant_${name} INTERFACE sextant_${need})
    endforeach()
    return()
  endif()
  add_library(sextant_${name} STATIC ${sources})
  target_link_libraries(sextant_${name} PUBLIC sextant_settings ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  foreach(need ${ROOM_NEEDS})
    string(REPLACE "/" "_" need ${need})
    target_link_libraries(sextant_${name} PUBLIC sextant_${need})
  endforeach()
endfunction()
