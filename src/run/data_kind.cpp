#include "run/data_kind.h"

#include <algorithm>
#include <filesystem>

#include "data/text_source.h"

namespace sextant {

bool is_stories(const std::vector<std::string>& paths) {
  return paths.size() == 1 && paths[0] == "stories";
}

bool are_token_files(const RunConfig& run, const std::vector<std::string>& paths) {
  if (is_stories(paths)) return false;
  if (run.data.format != DataFormat::automatic) return choice_of(run.data.format).holds_tokens;
  return std::none_of(paths.begin(), paths.end(), [](const std::string& p) {
    return std::filesystem::is_directory(p) || text_format_of(p) != nullptr;
  });
}

bool has_text(const RunConfig& run) {
  return !are_token_files(run, run.data.train);
}

TokenFileOptions token_file_options(const RunConfig& run) {
  if (run.data.format == DataFormat::tokens_u16) return {TokenKind::flat, TokenType::u16};
  if (run.data.format == DataFormat::tokens_u32) return {TokenKind::flat, TokenType::u32};
  if (run.data.format == DataFormat::megatron) return {TokenKind::megatron, {}};
  return {};
}

}  // namespace sextant
