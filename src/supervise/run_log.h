// RunLog: OUT/run.log, to which every attempt's output and the supervisor's own lines are appended; and its echo on
// standard output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "ckpt/disk.h"
#include "ckpt/still_there.h"

namespace sextant {

class RunLog {
 public:
  enum class Echo : uint8_t { none, standard_output };
  RunLog(const std::filesystem::path& out, Echo echo);

  int file() const { return file_.get(); }  // for processes to write to
  void say(std::string_view line);          // "== line"; where the file does not take it, on standard output alone
  void echo();                              // what was appended since the last call
  bool is_there() const { return is_still_at(file_, path_); }  // false once it has been removed
  int64_t size() const;
  std::string text_from(int64_t offset) const;  // to its end; of a long one the last part

 private:
  std::filesystem::path path_;
  Descriptor file_;
  Echo echo_;
  int64_t echoed_ = 0;
};

}  // namespace sextant
