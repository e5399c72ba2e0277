#include "text/split/pcre_categories.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "text/unicode/unicode_properties.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace {

using Ranges = std::vector<CodeRange>;

// By category, in the order of leaf_categories(): one search through all characters, each category being a group.
std::vector<Ranges> ask_pcre() {
  std::string pattern, text;
  for (const std::string& name : leaf_categories())
    pattern += fmt::format("{}(\\p{{{}}}++)", pattern.empty() ? "" : "|", name);
  for (char32_t c = 0; c <= kLastCode; ++c)
    if (c < 0xD800 || c > 0xDFFF) append_utf8(c, text);

  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF, &error, &offset, nullptr),
      pcre2_code_free);
  BUG_IF(!code, "PCRE2 does not know the general categories");
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code.get(), nullptr), pcre2_match_data_free);
  std::vector<Ranges> found(leaf_categories().size());
  for (size_t at = 0; at < text.size();) {
    int groups = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                             PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, data.get(), nullptr);
    BUG_IF(groups < 2, "a character without a general category");
    size_t end = pcre2_get_ovector_pointer(data.get())[1];
    char32_t first = decode_valid_utf8(text.data() + at).code;
    char32_t last = decode_valid_utf8(previous_utf8(text.data() + end)).code;
    found[static_cast<size_t>(groups) - 2].push_back({first, last});
    at = end;
  }
  return found;
}

}  // namespace

CodeSet pcre_category(std::string_view name) {
  static const std::vector<Ranges> found = ask_pcre();
  std::vector<std::string> names = leaf_categories();
  CodeSet out;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].starts_with(name)) out.add(CodeSet(found[i]));
  return out;
}

}  // namespace sextant
