# sextant_module(FOLDER [FOLDERS sub…] [NEEDS modules…] [PUBLIC libs…] [PRIVATE libs…] [APART sources…] [OPTIMIZE level]): src/FOLDER/*.cpp,
# and those of the sub-folders named, become the library sextant_FOLDER (exec/cpu becomes sextant_exec_cpu). Sources are globbed: a new
# op is a new file, not a new list entry. What a module NEEDS is all that it may include: the list is written to modules.txt, from
# which tests/base/includes_test.cpp checks every #include. A release build compiles a module with -O2, or with the level it names: 3 where
# every byte or number passes through it, 1 or g where what it does is done once per command and compiling it takes half the time.

find_package(Threads REQUIRED)

add_library(sextant_settings INTERFACE)
target_include_directories(sextant_settings INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(sextant_settings INTERFACE Threads::Threads)
target_compile_options(sextant_settings INTERFACE
                       $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wno-missing-field-initializers>
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)  # GCC 12 gives false -Wrestrict warnings in std::string
# __FILE__ counts from the checkout: messages are shorter, and objects are the same in every checkout.
target_compile_options(sextant_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(SEXTANT_UNITY)  # GCC takes a source that is included for a header, whose types must not use unnamed namespaces
  target_compile_options(sextant_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
# Not with sanitizers: GCC then takes variables of its own library for uninitialised. The release build sees the same sources.
if(SEXTANT_WERROR AND NOT SEXTANT_SANITIZE)
  target_compile_options(sextant_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(SEXTANT_SANITIZE)
  target_compile_options(sextant_settings INTERFACE -fsanitize=${SEXTANT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sextant_settings INTERFACE -fsanitize=${SEXTANT_SANITIZE})
  if(SEXTANT_SANITIZE MATCHES "undefined")  # a quarter of the compile time, for what the address sanitizer finds too or nobody does
    target_compile_options(sextant_settings INTERFACE -fno-sanitize=null,vptr,object-size)
    # What is tested is watched; to watch the tests' own arithmetic besides takes a third of the time that they compile.
    target_compile_options(sextant_settings INTERFACE $<$<BOOL:$<TARGET_PROPERTY:SEXTANT_IS_TEST>>:-fno-sanitize=undefined>)
  endif()
endif()
if(SEXTANT_FUZZ)  # libFuzzer learns from the branches that the libraries take
  target_compile_options(sextant_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# sextant_unity(TARGET [APART sources…]): compiles a target's sources sixteen at a time, which takes less than half the time.
# APART are patterns of sources that are compiled by themselves, because their local names are also those of a neighbour. CUDA
# sources always are: a newer CMake would join them too.
function(sextant_unity target)
  if(NOT SEXTANT_UNITY)
    return()
  endif()
  cmake_parse_arguments(UNITY "" "" "APART" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
  get_target_property(own_sources ${target} SOURCES)
  list(FILTER own_sources INCLUDE REGEX "\\.cu$")
  set_property(SOURCE ${own_sources} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(pattern ${UNITY_APART})
    file(GLOB sources ${CMAKE_CURRENT_SOURCE_DIR}/${pattern})
    if(NOT sources)
      message(FATAL_ERROR "${target}: no source matches ${pattern}, which is to be compiled apart")
    endif()
    set_property(SOURCE ${sources} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()

# sextant_optimize(TARGET LEVEL): -OLEVEL in a release build. Under sanitizers, where presets say -Og, which compiles in half the
# time of -O1, only what is computed with is optimised.
function(sextant_optimize target level)
  if(SEXTANT_SANITIZE AND level EQUAL 3)
    target_compile_options(${target} PRIVATE -O1)
  elseif(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")  # CMake's own: who sets another level means it
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O${level}>)
  endif()
endfunction()

set(SEXTANT_MODULE_LIST ${CMAKE_BINARY_DIR}/modules.txt)
file(WRITE ${SEXTANT_MODULE_LIST}.new "")

# Writes the list where it has changed, so that what depends on it is not built again without need.
function(sextant_finish_module_list)
  configure_file(${SEXTANT_MODULE_LIST}.new ${SEXTANT_MODULE_LIST} COPYONLY)
endfunction()

# A module that this build leaves out: its includes are checked all the same.
function(sextant_declare_module folder)
  cmake_parse_arguments(MODULE "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE;APART;OPTIMIZE" ${ARGN})
  string(REPLACE ";" " " needs "${MODULE_NEEDS}")
  file(APPEND ${SEXTANT_MODULE_LIST}.new "${folder}: ${needs}\n")
endfunction()

# A module that was compiled in another build, which is the same there: its library and what it is linked with.
function(sextant_built_module name)  # as sextant_module
  cmake_parse_arguments(MODULE "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE;APART;OPTIMIZE" ${ARGN})
  set(library ${SEXTANT_LIBRARIES}/libsextant_${name}.a)
  if(NOT EXISTS ${library})
    message(FATAL_ERROR "${library} is not there: build that folder first (scripts/build release)")
  endif()
  add_library(sextant_${name} STATIC IMPORTED GLOBAL)
  set_target_properties(sextant_${name} PROPERTIES IMPORTED_LOCATION ${library})
  target_link_libraries(sextant_${name} INTERFACE sextant_settings ${MODULE_PUBLIC})
  foreach(private ${MODULE_PRIVATE})
    target_link_libraries(sextant_${name} INTERFACE $<LINK_ONLY:${private}>)
  endforeach()
  sextant_needs(sextant_${name} INTERFACE ${MODULE_NEEDS})
endfunction()

function(sextant_needs target scope)  # MODULE…
  foreach(need ${ARGN})
    string(REPLACE "/" "_" need ${need})
    target_link_libraries(${target} ${scope} sextant_${need})
  endforeach()
endfunction()

function(sextant_module folder)
  sextant_declare_module(${folder} ${ARGN})
  cmake_parse_arguments(MODULE "" "" "FOLDERS;NEEDS;PUBLIC;PRIVATE;APART;OPTIMIZE" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  if(SEXTANT_LIBRARIES AND NOT folder MATCHES "cuda|nccl")  # which other builds do not have
    sextant_built_module(${name} ${ARGN})
    return()
  endif()
  set(patterns ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  foreach(sub ${MODULE_FOLDERS})
    list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${folder}/${sub}/*.cpp)
    if(CMAKE_CUDA_COMPILER)
      list(APPEND patterns ${CMAKE_SOURCE_DIR}/src/${folder}/${sub}/*.cu)
    endif()
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  add_library(sextant_${name} STATIC ${sources})
  list(TRANSFORM MODULE_APART PREPEND src/${folder}/)
  sextant_unity(sextant_${name} APART ${MODULE_APART})
  if(NOT MODULE_OPTIMIZE)
    set(MODULE_OPTIMIZE 2)
  endif()
  sextant_optimize(sextant_${name} ${MODULE_OPTIMIZE})
  target_link_libraries(sextant_${name} PUBLIC sextant_settings ${MODULE_PUBLIC} PRIVATE ${MODULE_PRIVATE})
  sextant_needs(sextant_${name} PUBLIC ${MODULE_NEEDS})
endfunction()
