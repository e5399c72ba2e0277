// Documents of text files that cannot be read: what becomes of them, and the record of those that were left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/on_error.h"

namespace sextant {

struct SkippedRecords {
  static constexpr size_t kPlaces = 3;

  int64_t count = 0;
  std::vector<std::string> first;  // "a.jsonl:5: the object has no key …", of the first kPlaces

  void add(std::string what);
  std::string text() const;  // "2 documents could not be read and were skipped: PLACE; PLACE"
};

// UserError when so many were skipped, beside `read` documents, that the files are not what they are taken for: more
// than a tenth, and at least a hundred.
void require_few_skipped(const SkippedRecords& skipped, int64_t read, std::string_view place);

}  // namespace sextant
