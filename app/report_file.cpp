#include "app/report_file.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/printable.h"

namespace sextant {

void write_report(const std::string& file, const std::string& text, FileRemarks remarks) {
  write_file_atomically(file, text);
  if (remarks == FileRemarks::on) fmt::print("written     {}\n", printable(file));
}

}  // namespace sextant
