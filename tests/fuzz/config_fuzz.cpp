// Any text as a config file and as an override: it is read, or refused with a UserError.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  // Reading model.from is hf_config_fuzz's business, and would let the input choose files.
  if (text.find("from") != std::string::npos) return 0;
  const std::vector<std::string> model{"model.preset=gpt2"}, with_text{"model.preset=gpt2", text};
  auto attempt = [](std::string_view toml, const std::vector<std::string>& overrides) {
    try {
      sextant::RunConfig run = sextant::parse_config(toml, "fuzz.toml", overrides);
      sextant::parse_config(sextant::config_toml(run), "again.toml");
    } catch (const sextant::UserError&) {
    }
  };
  attempt(text, model);
  attempt("", with_text);
  return 0;
}
