#include "models/hf_adapter.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/path_error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

std::string text_of(const nlohmann::json& config, const char* key, std::string if_missing) {
  if (!config.is_object() || !config.contains(key) || !config[key].is_string()) return if_missing;
  return config[key].get<std::string>();
}

}  // namespace

std::optional<Complaint> complaint_about_adapter(const fs::path& directory) {
  const fs::path file = directory / "adapter_config.json";
  if (is_there(directory / "config.json") || !fs::is_regular_file(look_at(file))) return std::nullopt;
  const nlohmann::json config = nlohmann::json::parse(read_file(file), nullptr, false);
  std::string merged = directory.lexically_normal().string();
  while (merged.size() > 1 && merged.ends_with('/')) merged.pop_back();
  return Complaint{
      .place = directory.string(),
      .got = fmt::format("an adapter ({}) of {}, without that model's weights", text_of(config, "peft_type", "PEFT"),
                         text_of(config, "base_model_name_or_path", "another model")),
      .expected = "a Hugging Face model directory",
      .hint =
          fmt::format("merge the adapter into its model first: python3 -c \"from peft import AutoPeftModelForCausalLM "
                      "as M; M.from_pretrained('{0}').merge_and_unload().save_pretrained('{0}-merged')\", and copy "
                      "the tokenizer's files there",
                      merged)};
}

}  // namespace sextant
