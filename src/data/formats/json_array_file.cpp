#include "data/formats/json_array_file.h"

#include <array>

#include "base/error.h"
#include "data/formats/open_text.h"
#include "data/json_scanner.h"

namespace sextant {

namespace {

constexpr std::string_view kAboutLines =
    "a file with an object on every line is JSON lines: name it .jsonl, or set data.format = \"jsonl\"";

consteval std::array<bool, 256> stops_at(std::string_view symbols) {
  std::array<bool, 256> stops{};
  for (char c : symbols) stops[static_cast<unsigned char>(c)] = true;
  return stops;
}

constexpr auto kStringStops = stops_at("\"\\"), kNestedStops = stops_at("\"{}[]"),
               kScalarStops = stops_at(",]}: \t\r\n");

}  // namespace

JsonArrayFile::JsonArrayFile(std::unique_ptr<ByteStream> stream, std::string name, const TextOptions& options)
    : name_(std::move(name)), in_(std::move(stream)), max_bytes_(options.max_document_bytes), json_(options.text_key) {}

std::optional<std::string_view> JsonArrayFile::next() {
  if (state_ == State::before) begin();
  if (state_ == State::after) return std::nullopt;
  if (peek() == ']') {
    end_array();
    return std::nullopt;
  }
  if (element_ > 0) expect(',', "',' or ']'");
  ++element_;
  read_value();
  try {
    return json_.parse(value_, {.file = name_, .number = element_, .noun = "element"});
  } catch (const UserError& error) {
    throw UnreadableDocument(error.complaints().front());
  }
}

void JsonArrayFile::begin() {
  int c = peek();
  if (c != '[' && c != '{') {
    if (c == StreamCharacters::kEnd) refuse("an array of objects");
    throw UserError({.place = fmt::format("{}:{}", name_, in_.line()),
                     .got = "the file holds neither an array nor an object",
                     .expected = "an array of objects, or an object with one"});
  }
  in_.get();
  in_object_ = c == '{';
  if (in_object_ && !seek_array())
    throw UserError({.place = name_,
                     .got = "the file is an object without an array",
                     .expected = "an array of objects, or an object with one",
                     .hint = std::string(kAboutLines)});
  array_seen_ = true;
  state_ = State::in_array;
}

bool JsonArrayFile::seek_array() {
  if (peek() == '}' && !array_seen_) {
    in_.get();
    return false;
  }
  for (;;) {
    if (peek() != '"') refuse("a string, the name of a value");
    read_over();
    expect(':', "':'");
    if (peek() == '[') {
      if (array_seen_)
        throw UserError({.place = fmt::format("{}:{}", name_, in_.line()),
                         .got = "the object has a second array",
                         .expected = "one, with all documents",
                         .hint = std::string(kAboutLines)});
      in_.get();
      return true;
    }
    read_over();
    if (peek() == '}') {
      in_.get();
      return false;
    }
    expect(',', "',' or '}'");
  }
}

void JsonArrayFile::end_array() {
  in_.get();
  if (in_object_) {
    if (peek() == '}') {
      in_.get();
    } else {
      expect(',', "',' or '}'");
      seek_array();  // throws where there is another
    }
  }
  require_end();
  state_ = State::after;
}

void JsonArrayFile::require_end() {
  if (peek() == StreamCharacters::kEnd) return;
  throw UserError({.place = fmt::format("{}:{}", name_, in_.line()),
                   .got = "the file goes on after its first value",
                   .expected = "one array, or one object",
                   .hint = std::string(kAboutLines)});
}

int JsonArrayFile::peek() {
  for (;;) {
    int c = in_.peek();
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return c;
    in_.get();
  }
}

void JsonArrayFile::expect(char symbol, std::string_view expected) {
  if (peek() != symbol) refuse(expected);
  in_.get();
}

void JsonArrayFile::read_value() {
  value_.clear();
  int c = peek();
  if (c == '"') {
    read_string();
  } else if (c == '{' || c == '[') {
    read_nested();
  } else {
    in_.read_until(kScalarStops, [&](std::string_view piece) { append(piece); });
    if (value_.empty()) refuse("a value");
  }
}

// Only nesting is followed here; whether every bracket is the right one is seen where the value is parsed.
void JsonArrayFile::read_nested() {
  int64_t depth = 0;
  do {
    in_.read_until(kNestedStops, [&](std::string_view piece) { append(piece); });
    int c = in_.peek();
    if (c == StreamCharacters::kEnd) refuse("'}' or ']'");
    if (c == '"') {
      read_string();
      continue;
    }
    depth += c == '{' || c == '[' ? 1 : -1;
    char symbol = static_cast<char>(in_.get());
    append({&symbol, 1});
  } while (depth > 0);
}

void JsonArrayFile::read_string() {
  in_.get();
  append("\"");
  for (;;) {
    in_.read_until(kStringStops, [&](std::string_view piece) { append(piece); });
    int c = in_.get();
    if (c == '"') return append("\"");
    int escaped = c == '\\' ? in_.get() : c;
    if (escaped == StreamCharacters::kEnd) refuse("'\"' at the end of the string");
    char pair[] = {'\\', static_cast<char>(escaped)};
    append({pair, 2});
  }
}

void JsonArrayFile::append(std::string_view piece) {
  if (std::ssize(value_) + std::ssize(piece) > max_bytes_)
    throw StreamError(fmt::format("no value ends within {} bytes, the limit", max_bytes_));
  value_ += piece;
}

void JsonArrayFile::read_over() {
  read_value();
  try {
    JsonScanner scan(value_);
    scan.read_over(scratch_);
    scan.expect_end();
  } catch (const JsonError& error) {
    refuse(error.what());
  }
}

void JsonArrayFile::refuse(std::string_view expected) {
  throw UserError({.place = fmt::format("{}:{}", name_, in_.line()),
                   .got = in_.peek() == StreamCharacters::kEnd ? "the file is cut short" : "the file is not valid JSON",
                   .expected = std::string(expected)});
}

std::string JsonArrayFile::place() const {
  return document_place(name_, DocumentUnit::element, element_);
}

namespace {

constexpr std::array<std::string_view, 1> kJsonArrayExtensions{".json"};

}  // namespace

// Folders of data hold .json files that describe it (dataset_info.json, state.json of Hugging Face's save_to_disk).
extern const DocumentFormat kJsonArray{
    .name = "JSON array",
    .extensions = kJsonArrayExtensions,
    .unit = DocumentUnit::element,
    .in_folders = InFolders::left,
    .open = [](const std::filesystem::path& path, const TextOptions& options) {
      return std::unique_ptr<DocumentFile>(std::make_unique<JsonArrayFile>(open_text(path), path.string(), options));
    }};

}  // namespace sextant
