#include "text/stated_eos.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(std::string place, std::string got, std::string expected) {
  throw UserError({.place = std::move(place), .got = std::move(got), .expected = std::move(expected)});
}

int64_t id_in(const Json& value, const std::string& place) {
  if (!value.is_number_integer() || value.get<double>() < 0 ||
      value.get<double>() > std::numeric_limits<int32_t>::max())
    refuse(place, "is not a token id", "an integer or a list of them");
  return value.get<int64_t>();
}

}  // namespace

std::optional<StatedEos> stated_eos_in(std::string_view text, std::string_view place) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) refuse(std::string(place), "is not a JSON object", "a file as transformers writes it");
  if (auto token = json.find("eos_token"); token != json.end() && !token->is_null()) {
    std::string at = fmt::format("{} eos_token", place);
    const Json& content = token->is_object() ? token->value("content", Json()) : *token;
    if (!content.is_string()) refuse(at, "has no content", "a string, or an object with its content");
    if (content.get<std::string>().empty()) return std::nullopt;
    return StatedEos{.place = std::move(at), .token = content.get<std::string>(), .ids = {}};
  }
  if (auto id = json.find("eos_token_id"); id != json.end() && !id->is_null()) {
    StatedEos stated{.place = fmt::format("{} eos_token_id", place), .token = {}, .ids = {}};
    if (id->is_array())
      for (const Json& one : *id) stated.ids.push_back(id_in(one, stated.place));
    else
      stated.ids.push_back(id_in(*id, stated.place));
    if (!stated.ids.empty()) return stated;
  }
  return std::nullopt;
}

std::optional<StatedEos> stated_eos(const fs::path& tokenizer_json) {
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "config.json", "generation_config.json"}) {
    fs::path file = tokenizer_json.parent_path() / name;
    if (!is_there(file)) continue;
    if (auto stated = stated_eos_in(read_file(file), file.string())) return stated;
  }
  return std::nullopt;
}

void take_stated_eos(const std::optional<StatedEos>& stated, Tokenizer& tokenizer) {
  if (!stated) return;
  if (!stated->token.empty()) {
    auto id = tokenizer.token_id(stated->token);
    if (!id)
      refuse(stated->place, fmt::format("'{}' is not a token of tokenizer.json", stated->token), "one of its tokens");
    return tokenizer.set_eos(*id);
  }
  // A model may have more rows than its tokenizer has tokens.
  for (int64_t id : stated->ids)
    if (id < static_cast<int64_t>(tokenizer.vocab_size())) return tokenizer.set_eos(static_cast<uint32_t>(id));
}

}  // namespace sextant
