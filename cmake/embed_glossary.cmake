# cmake -DPAGE=docs/glossary.md -DOUT=glossary_text.cpp -P embed_glossary.cmake
# A literal holds at most 64 kB (ISO C++).
file(READ ${PAGE} text)
string(LENGTH "${text}" length)
if(length GREATER 65000)
  message(FATAL_ERROR "${PAGE} has ${length} bytes; expected at most 65000. Split it.")
endif()
set(head "// Made from docs/glossary.md by cmake/embed_glossary.cmake.\n#include \"config/glossary_text.h\"\n")
file(WRITE ${OUT} "${head}\nnamespace sextant {\n\nconst char* const kGlossaryText = R\"PAGE(${text})PAGE\";\n\n}  // namespace sextant\n")
