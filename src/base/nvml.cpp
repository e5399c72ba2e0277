#include "base/nvml.h"

#include <dlfcn.h>

namespace sextant {

Nvml::Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  started_ = ask("nvmlInit_v2");
}

Nvml::~Nvml() {
  if (!library_) return;
  if (started_) ask("nvmlShutdown");
  ::dlclose(library_);
}

void* Nvml::address_of(const char* function) const {
  return library_ ? ::dlsym(library_, function) : nullptr;
}

}  // namespace sextant
