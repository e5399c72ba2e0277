// Text in other encodings, made by Python's codecs: refused where it is read, with the encoding and the command that
// converts it; never quietly mended.
#include "data/text_encoding.h"

#include <gtest/gtest.h>

#include "data/scratch_folder.h"
#include "data/text_source.h"

namespace sextant {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> documents_of(const fs::path& path, const TextOptions& options = {}) {
  std::vector<std::string> documents;
  std::vector<fs::path> paths{path};
  for_each_document(paths, options, [&](std::string_view document) { documents.emplace_back(document); });
  return documents;
}

std::string refusal_of_text(const fs::path& path, const TextOptions& options = {}) {
  return complaint_of([&] { documents_of(path, options); });
}

// ASCII in units of several bytes.
std::string wide(std::string_view text, size_t bytes, bool little, std::string mark) {
  std::string out = std::move(mark);
  for (char c : text) {
    std::string unit(bytes, '\0');
    unit[little ? 0 : bytes - 1] = c;
    out += unit;
  }
  return out;
}

TEST(TextEncoding, IsGuessedFromTheBytes) {
  const std::vector<std::pair<std::string_view, std::string>> texts{
      {"WINDOWS-1251",
       "\xc7\xe4\xf0\xe0\xe2\xf1\xf2\xe2\xf3\xe9\x2c\x20\xec\xe8\xf0\x2e\x20\xdd\xf2\xee\x20\xef\xf0\xee\xf1\xf2\xee"
       "\xe9\x20\xf0\xf3\xf1\xf1\xea\xe8\xe9\x20\xf2\xe5\xea\xf1\xf2\x20\xee\x20\xef\xee\xe3\xee\xe4\xe5\x20\xe8\x20"
       "\xee\x20\xeb\xfe\xe4\xff\xf5\x2e"},
      {"KOI8-R",
       "\xfa\xc4\xd2\xc1\xd7\xd3\xd4\xd7\xd5\xca\x2c\x20\xcd\xc9\xd2\x2e\x20\xfc\xd4\xcf\x20\xd0\xd2\xcf\xd3\xd4\xcf"
       "\xca\x20\xd2\xd5\xd3\xd3\xcb\xc9\xca\x20\xd4\xc5\xcb\xd3\xd4\x20\xcf\x20\xd0\xcf\xc7\xcf\xc4\xc5\x20\xc9\x20"
       "\xcf\x20\xcc\xc0\xc4\xd1\xc8\x2e"},
      {"SHIFT_JIS",
       "\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81\x42\x93\x56\x8b"
       "\x43\x82\xcd\x82\xc6\x82\xc4\x82\xe0\x82\xe6\x82\xa2\x82\xc5\x82\xb7\x81\x42"},
      {"EUC-JP",
       "\xa4\xb3\xa4\xec\xa4\xcf\xc6\xfc\xcb\xdc\xb8\xec\xa4\xce\xca\xb8\xbe\xcf\xa4\xc7\xa4\xb9\xa1\xa3\xc5\xb7\xb5"
       "\xa4\xa4\xcf\xa4\xc8\xa4\xc6\xa4\xe2\xa4\xe8\xa4\xa4\xa4\xc7\xa4\xb9\xa1\xa3"},
      {"GB18030",
       "\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xbc\xf2\xb5\xa5\xb5\xc4\xd6\xd0\xce\xc4\xce\xc4\xb1\xbe\xa3\xac\xd3\xc3\xc0"
       "\xb4\xbc\xec\xb2\xe9\xb1\xe0\xc2\xeb\xa1\xa3"},
      {"ISO-8859-1",
       "\x55\x6e\x20\x63\x61\x66\xe9\x20\x74\x72\xe8\x73\x20\x66\x6f\x72\x74\x2c\x20\x73\x27\x69\x6c\x20\x76\x6f\x75"
       "\x73\x20\x70\x6c\x61\xee\x74\x2c\x20\x70\x72\xe8\x73\x20\x64\x75\x20\x63\x68\xe2\x74\x65\x61\x75\x2e"},
      {"WINDOWS-1252",
       "\x48\x65\x20\x73\x61\x69\x64\x20\x93\x6e\x6f\x94\x20\x96\x20\x61\x6e\x64\x20\x77\x65\x6e\x74\x20\x74\x6f\x20"
       "\x74\x68\x65\x20\x63\x61\x66\xe9\x2e"},
      {"UTF-8",
       "Zw\xc3\xb6lf Boxk\xc3\xa4mpfer jagen \xff Viktor \xc3\xbc"
       "ber den Deich."},
  };
  for (const auto& [encoding, text] : texts) {
    auto broken = find_broken_utf8(text);
    ASSERT_TRUE(broken) << encoding;
    EXPECT_EQ(broken->encoding, encoding);
  }
  EXPECT_FALSE(find_broken_utf8("plain, \xc3\xa4, \xe4\xb8\xad, \xf0\x9f\x98\x80"));
  EXPECT_EQ(find_broken_utf8("ab\xe9")->at, 2u);
  EXPECT_EQ(find_broken_utf8(std::string(100000, 'x') + "\xc3\xa4 caf\xe9")->at, 100006u);
  EXPECT_EQ(find_broken_utf8("cut short \xe4\xb8")->at, 10u);
}

TEST(TextEncoding, PlainTextIsRefusedWithTheByteAndTheCommand) {
  ScratchFolder folder;
  auto path = folder.write("latin.txt", "one<|endoftext|>a caf\xe9 there");
  EXPECT_TRUE(
      says(refusal_of_text(path),
           {"latin.txt: document 2 at byte 21: the text is not UTF-8 (likely ISO-8859-1)", "text in UTF-8",
            fmt::format("iconv -f ISO-8859-1 -t UTF-8 {} > {}", path.string(), (folder / "latin.utf8.txt").string())}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("few.txt", "na\xc3\xafve na\xc3\xafve \xff na\xc3\xafve")),
                   {"few.txt: document 1 at byte 14: the text is UTF-8 but for some bytes", "iconv -c"}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("cut.txt", "the end \xe4\xb8")), {"cut.txt: document 1 at byte 8"}));
  // Asked for, the document is left out and the others are read.
  EXPECT_EQ(documents_of(path, {.on_error = OnError::skip}), std::vector<std::string>{"one"});
}

TEST(TextEncoding, WideTextIsRefusedInEveryFormat) {
  ScratchFolder folder;
  const std::string text = "{\"text\": \"some plain words\"}\n{\"text\": \"and more of them\"}\n";
  struct Wide {
    std::string_view name;
    size_t bytes;
    bool little;
    std::string mark;
  };
  const Wide encodings[] = {{"UTF-16LE", 2, true, "\xff\xfe"},
                            {"UTF-16BE", 2, false, "\xfe\xff"},
                            {"UTF-32LE", 4, true, std::string("\xff\xfe\0\0", 4)},
                            {"UTF-32BE", 4, false, std::string("\0\0\xfe\xff", 4)}};
  for (const Wide& encoding : encodings)
    for (const std::string& mark : {encoding.mark, std::string()})
      for (const char* file : {"a.txt", "a.jsonl", "a.csv", "a.json"})
        for (OnError on_error : {OnError::stop, OnError::skip})
          EXPECT_TRUE(says(refusal_of_text(folder.write(file, wide(text, encoding.bytes, encoding.little, mark)),
                                           {.on_error = on_error}),
                           {file, "at byte 0", fmt::format("(likely {})", encoding.name),
                            fmt::format("iconv -f {}", encoding.name)}))
              << encoding.name << file << mark.size();
  // Letters whose high bytes are not 0, but valid UTF-8 all the same, and letters that are not.
  using namespace std::string_literals;
  const std::string russian = "\x34\x04\x3e\x04\x3c\x04 \0\x38\x04 \0\x41\x04\x30\x04\x34\x04\n\0"s;
  const std::string greek = "\x03\xb1\x03\xc0\x03\xcc\0 \x03\xc4\x03\xbf\0 \x03\xc6\x03\xc9\x03\xc2\0\n"s;
  const std::string chinese = "\x2d\x4e\x87\x65\x55\x5b \0\x2d\x4e\xfd\x56\x1a\x4e\n\0"s;
  EXPECT_TRUE(says(refusal_of_text(folder.write("russian.txt", russian)), {"at byte 0", "(likely UTF-16LE)"}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("greek.txt", greek)), {"at byte 0", "(likely UTF-16BE)"}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("chinese.txt", chinese)), {"at byte 0", "(likely UTF-16LE)"}));
  // A table with tabs and line breaks at every other place is text.
  const std::string table("a\tb\tc\td\ne\tf\tg\th\n");
  EXPECT_EQ(documents_of(folder.write("table.txt", table)), std::vector<std::string>{table});
  // A few zero bytes are characters like others.
  const std::string zeros("a\0b and a longer rest", 21);
  EXPECT_EQ(documents_of(folder.write("zeros.txt", zeros)), std::vector<std::string>{zeros});
}

TEST(TextEncoding, AByteOrderMarkOfUtf8IsNoText) {
  ScratchFolder folder;
  EXPECT_EQ(documents_of(folder.write("a.txt",
                                      "\xef\xbb\xbf"
                                      "one<|endoftext|>\xef\xbb\xbf"
                                      "two")),
            (std::vector<std::string>{"one",
                                      "\xef\xbb\xbf"
                                      "two"}));
  EXPECT_EQ(documents_of(folder.write("a.jsonl", "\xef\xbb\xbf{\"text\": \"one\"}\n")),
            std::vector<std::string>{"one"});
}

TEST(TextEncoding, JsonLinesAndTablesSayTheEncodingToo) {
  ScratchFolder folder;
  EXPECT_TRUE(says(refusal_of_text(folder.write("a.jsonl", "{\"text\": \"a caf\xe9 there\"}\n")),
                   {"a.jsonl:1:16: the line is not UTF-8 (likely ISO-8859-1); expected UTF-8", "iconv -f ISO-8859-1"}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("a.csv", "text\na caf\xe9 there\n")),
                   {"a.csv:2: the text is not UTF-8 (likely ISO-8859-1)", "iconv -f ISO-8859-1"}));
  EXPECT_TRUE(says(refusal_of_text(folder.write("a.json", "[{\"text\": \"a caf\xe9 there\"}]")),
                   {"a.json: element 1", "is not UTF-8 (likely ISO-8859-1)", "iconv -f ISO-8859-1"}));
}

}  // namespace
}  // namespace sextant
