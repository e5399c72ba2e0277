#include "ir/program.h"

#include "base/error.h"

namespace sextant {

const Value* Program::find(std::string_view path) const {
  for (const Value& value : values)
    if (value.path == path) return &value;
  return nullptr;
}

const Value& Program::at(std::string_view path) const {
  const Value* value = find(path);
  BUG_IF(!value, "program {} has no value '{}'", name, path);
  return *value;
}

}  // namespace sextant
