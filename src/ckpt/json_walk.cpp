#include "ckpt/json_walk.h"

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "base/error.h"

namespace sextant {

namespace {

using Json = nlohmann::json;

// The parser beneath keeps its own profile on the heap, so depth costs no call frames even before we refuse it.
class Walker : public nlohmann::json_sax<Json> {
 public:
  Walker(std::string_view place, const std::function<void(const JsonValue&)>& visit) : place_(place), visit_(visit) {}

  bool null() override { return value({.kind = JsonKind::other}); }
  bool boolean(bool) override { return value({.kind = JsonKind::other}); }
  bool number_integer(number_integer_t) override { return value({.kind = JsonKind::other}); }
  bool number_unsigned(number_unsigned_t n) override { return value({.kind = JsonKind::natural, .number = n}); }
  bool number_float(number_float_t, const string_t&) override { return value({.kind = JsonKind::other}); }
  bool string(string_t& text) override { return value({.kind = JsonKind::string, .text = text}); }
  bool binary(binary_t&) override { return value({.kind = JsonKind::other}); }

  bool start_object(size_t) override {
    open({.kind = JsonKind::object});
    path_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second)
      throw UserError({.place = place_,
                       .got = fmt::format("key {} is given twice in one JSON object", shown(key)),
                       .expected = "each key once"});
    path_.back() = key;
    return true;
  }
  bool end_object() override {
    path_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override {
    open({.kind = JsonKind::array});
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    throw UserError({.place = fmt::format("{}: JSON byte {}", place_, position),
                     .got = token.empty() ? std::string("broken JSON") : fmt::format("broken JSON at {}", shown(token)),
                     .expected = "a JSON document in UTF-8"});
  }

 private:
  struct Open {
    JsonKind kind;
    std::unordered_set<std::string> keys;  // of an object
  };

  bool value(JsonValue value) {
    value.path = path_;
    for (auto open = open_.rbegin(); open != open_.rend() && open->kind == JsonKind::array; ++open) ++value.array_depth;
    visit_(value);
    return true;
  }

  void open(JsonValue opened) {
    if (open_.size() == kMaxJsonDepth)
      throw UserError({.place = place_,
                       .got = "JSON nested too deeply",
                       .expected = fmt::format("at most {} levels", kMaxJsonDepth)});
    value(opened);
    open_.push_back({opened.kind, {}});
  }

  std::string place_;
  const std::function<void(const JsonValue&)>& visit_;
  std::vector<Open> open_;         // objects and arrays we are inside of, outermost first
  std::vector<std::string> path_;  // the current key of every open object
};

}  // namespace

void walk_json(std::string_view place, std::string_view text, const std::function<void(const JsonValue&)>& visit) {
  // The library takes a zero byte for the end of the text and would not look at what follows.
  if (size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw UserError({.place = fmt::format("{}: JSON byte {}", place, zero),
                     .got = "a zero byte",
                     .expected = "a JSON document in UTF-8"});
  Walker walker(place, visit);
  Json::sax_parse(text, &walker);
}

std::string json_string(std::string_view text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    throw UserError({.place = shown(text), .got = "a name that is not UTF-8", .expected = "UTF-8"});
  }
}

std::string shown(std::string_view name) {
  constexpr size_t kMaxShown = 120;
  std::string quoted = Json(name.substr(0, kMaxShown)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return name.size() <= kMaxShown ? quoted : quoted + "…";
}

}  // namespace sextant
