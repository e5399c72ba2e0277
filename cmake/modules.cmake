# sextant_module(FOLDER [FOLDERS sub…] [NEEDS modules…] [PUBLIC libs…] [PRIVATE libs…]): src/FOLDER/*.cpp, and those of the
# sub-folders named, become the library sextant_FOLDER (exec/cpu becomes sextant_exec_cpu). Sources are globbed: a new op is a
# new file, not a new list entry. What a module NEEDS is all that it may include: the list is written to modules.txt, from
# which tests/base/includes_test.cpp checks every #include.

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

set(SEXTANT_MODULE_LIST ${CMAKE_BINARY_DIR}/modules.txt)
file(WRITE ${SEXTANT_MODULE_LIST}.new "")

# Writes the list where it has changed, so that what depends on it is not built again without need.
function(sextant_finish_module_list)
  configure_file(${SEXTANT_MODULE_LIST}.new ${SEXTANT_MODULE_LIST} COPYONLY)
endfunction()

# A module that this build leaves out: its includes are checked all the same.
function(sextant_declare_module folder)
  cmake_parse_arguments(MODULE "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE" ${ARGN})
  string(REPLACE ";" " " needs "${MODULE_NEEDS}")
  file(APPEND ${SEXTANT_MODULE_LIST}.new "${folder}: ${needs}\n")
endfunction()

function(sextant_module folder)
  sextant_declare_module(${folder} ${ARGN})
  cmake_parse_arguments(MODULE "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(patterns ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  foreach(sub ${MODULE_FOLDERS})
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${folder}/${sub}/*.cpp)
    if(CMAKE_CUDA_COMPILER)
      list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${folder}/${sub}/*.cu)
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  add_library(sextant_${name} STATIC ${sources})
  target_link_libraries(sextant_${name} PUBLIC sextant_settings ${MODULE_PUBLIC} PRIVATE ${MODULE_PRIVATE})
  foreach(need ${MODULE_NEEDS})
    string(REPLACE "/" "_" need ${need})
    target_link_libraries(sextant_${name} PUBLIC sextant_${need})
  endforeach()
endfunction()
