# cmake -DSOURCE=checkout -DVERSION=0.1.0 -DOUT=version.cpp -P write_version.cmake
# "0.1.0 (abc1234)"; "+changes" where files that are part of the commit differ from it; "0.1.0" outside of a checkout.
set(text "${VERSION}")
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=7 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    execute_process(COMMAND ${git} -C ${SOURCE} --no-optional-locks status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      string(APPEND commit "+changes")
    endif()
    string(APPEND text " (${commit})")
  endif()
endif()
set(written "#include \"app/version.h\"\n\nnamespace sextant {\n\nconst char* version() {\n  return \"${text}\";\n}\n\n}  // namespace sextant\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL written)
  file(WRITE ${OUT} "${written}")
endif()
