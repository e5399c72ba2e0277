// Opens files that are read where they lie in memory: File is made from its name, its bytes and the options.
#pragma once

#include <filesystem>
#include <memory>

#include "base/files.h"
#include "data/formats/document_format.h"

namespace sextant {

template <class File>
std::unique_ptr<DocumentFile> open_mapped(const std::filesystem::path& path, const TextOptions& options) {
  struct Mapped : MappedFile, File {
    Mapped(const std::filesystem::path& at, const TextOptions& how) : MappedFile(at), File(at.string(), text(), how) {}
  };
  return std::make_unique<Mapped>(path, options);
}

}  // namespace sextant
