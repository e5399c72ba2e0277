// The tokenizer against ids that HF `tokenizers` gave for the same text.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "text/tokenizer_fixtures.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {
namespace {

using Ids = std::vector<uint32_t>;

class FixtureTokenizer : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture(GetParam() + ".json"));
  std::vector<std::string> documents = sample_documents();
};

TEST_P(FixtureTokenizer, EncodesAMegabyteAsHfDoes) {
  std::vector<ExpectedIds> expected = expected_ids(GetParam() + ".expected");
  ASSERT_EQ(documents.size(), expected.size());
  size_t bytes = 0;
  // Twice: with empty caches, and with full ones.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < documents.size(); ++i) {
      Ids ids = tokenizer.encode(documents[i]);
      if (!expected[i].ids.empty()) {
        ASSERT_EQ(ids, expected[i].ids) << i << " " << testing::PrintToString(documents[i]);
      }
      ASSERT_EQ(ids.size(), expected[i].count) << i << " " << testing::PrintToString(documents[i]);
      ASSERT_EQ(crc_of(ids), expected[i].crc) << i << " " << testing::PrintToString(documents[i]);
      bytes += documents[i].size();
    }
  }
  EXPECT_GT(bytes, 2u << 20);
}

TEST_P(FixtureTokenizer, DecodesToTheTextItself) {
  for (const std::string& document : documents) {
    if (document.find("<|wide|>") != std::string::npos) continue;  // it takes the spaces around it
    std::string mended;
    append_mended_utf8(document, mended);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(document)), mended);
  }
}

TEST_P(FixtureTokenizer, ThreadsDoNotChangeIds) {
  std::vector<std::string_view> views(documents.begin(), documents.end());
  ThreadTeam team(3);
  std::vector<Ids> ids = tokenizer.encode_batch(views, team);
  for (size_t i = 0; i < documents.size(); ++i) ASSERT_EQ(ids[i], tokenizer.encode(documents[i]));
}

TEST_P(FixtureTokenizer, SurvivesWritingAndReading) {
  std::string written = tokenizer.to_json();
  Tokenizer again = Tokenizer::from_json(written, "again");
  EXPECT_EQ(again.to_json(), written);
  EXPECT_EQ(again.vocab_size(), tokenizer.vocab_size());
  for (size_t i = 0; i < 300; ++i)
    ASSERT_EQ(again.encode_with_special(documents[i]), tokenizer.encode_with_special(documents[i]));
}

TEST_P(FixtureTokenizer, StreamsWholeCharactersOnly) {
  for (size_t i = 0; i < 300; ++i) {
    Ids ids = tokenizer.encode(documents[i]);
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (uint32_t id : ids) {
      std::string text = decoder.push(id);
      EXPECT_TRUE(is_valid_utf8(text));
      streamed += text;
    }
    streamed += decoder.finish();
    ASSERT_EQ(streamed, tokenizer.decode(ids));
  }
}

TEST_P(FixtureTokenizer, AppendsToWhatIsThere) {
  Ids ids{7};
  tokenizer.encode_into("star", ids);
  Ids alone = tokenizer.encode("star");
  alone.insert(alone.begin(), 7);
  EXPECT_EQ(ids, alone);
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, FixtureTokenizer, testing::Values("gpt2_style", "llama3_style"),
                         [](const auto& info) { return info.param; });

// One file for each kind beyond byte-level BPE, made by tests/peers/tokenizer_kinds.py. The last line of what is
// expected is for all documents together.
class KindOfTokenizer : public testing::TestWithParam<std::string> {};

TEST_P(KindOfTokenizer, EncodesAMegabyteAsHfDoes) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("kinds/" + GetParam() + ".json"));
  expect_ids_of_sample(tokenizer, expected_ids("kinds/" + GetParam() + ".expected"));
  std::string written = tokenizer.to_json();
  Tokenizer again = Tokenizer::from_json(written, "again");
  EXPECT_EQ(again.to_json(), written);
  std::vector<std::string> documents = sample_documents();
  for (size_t i = 0; i < 300; ++i) ASSERT_EQ(again.encode(documents[i]), tokenizer.encode(documents[i]));
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, KindOfTokenizer,
                         testing::Values("llama2", "llama2_every_merge", "llama2_first", "some_bytes",
                                         "unigram_small_map", "unigram_bytes", "normalizer_nfc",
                                         "char_normalizer_sequence", "pre_tokenizer_metaspace_first"),
                         [](const auto& info) { return info.param; });

// As in HF: words are cut first, and only the word at the very begin of the text has a prefix.
TEST(Tokenizer, WordsThatAStageChangesAtTheBeginAreNotTakenForOthers) {
  Tokenizer tokenizer =
      Tokenizer::from_json(R"({"version": "1.0", "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true}]},
    "model": {"type": "BPE", "vocab": {"\u2581": 0, "a": 1, "\u2581a": 2}, "merges": [["\u2581", "a"]]}})",
                           "test");
  EXPECT_EQ(tokenizer.encode("a a"), (Ids{2, 1}));
  EXPECT_EQ(tokenizer.encode(" a a"), (Ids{1, 1}));
  EXPECT_EQ(tokenizer.encode("a"), (Ids{2}));
}

// Vocabularies of characters with byte_fallback lose nothing but which of U+2581 were spaces. The space that goes
// before a text stays when it is decoded.
TEST(Tokenizer, CharactersWithByteFallbackDecodeToTheTextItself) {
  enum class Front { always_space, one_space };
  for (auto [file, front] :
       {std::pair("kinds/llama2.json", Front::always_space), std::pair("kinds/llama2_first.json", Front::one_space),
        std::pair("sentencepiece/bpe.model", Front::always_space)}) {
    Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture(file));
    int compared = 0;
    for (const std::string& document : sample_documents()) {
      // Added tokens of the first take white space, or have a space put behind them.
      if (document.find("\u2581") != std::string::npos || document.find("keepword") != std::string::npos ||
          document.find('<') != std::string::npos)
        continue;
      std::string expected;
      append_mended_utf8(document, expected);
      if (expected.empty()) continue;
      if (front == Front::always_space || !expected.starts_with(' ')) expected.insert(0, " ");
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(document)), expected) << file;
      ++compared;
    }
    EXPECT_GT(compared, 500) << file;
  }
}

TEST(Tokenizer, BytesOfMetaspaceTokens) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("kinds/llama2.json"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("The star\n☃")), " The star\n☃");
  EXPECT_EQ(tokenizer.token_bytes(3 + 0x0A), "\n");
  EXPECT_EQ(tokenizer.prefix_ids().size(), 1u);
}

TEST(Tokenizer, SpecialTokensOfTheFixtures) {
  Tokenizer gpt2 = Tokenizer::load(tokenizer_fixture("gpt2_style.json"));
  EXPECT_EQ(gpt2.vocab_size(), 2402u);
  EXPECT_EQ(gpt2.eos_id(), 0u);
  EXPECT_EQ(gpt2.bos_id(), 0u);
  EXPECT_EQ(gpt2.token_id("<|wide|>"), 2400u);
  EXPECT_EQ(gpt2.token_id("Ġ"), gpt2.encode(" ")[0]);
  EXPECT_EQ(gpt2.token_id("no such token"), std::nullopt);
  EXPECT_TRUE(gpt2.is_special(1));
  EXPECT_FALSE(gpt2.is_special(2400));
  EXPECT_FALSE(gpt2.is_special(1u << 31));
  EXPECT_EQ(gpt2.added_tokens().size(), 4u);
  EXPECT_EQ(gpt2.encode_with_special("a"), gpt2.encode("a"));
  EXPECT_EQ(gpt2.decode(Ids{0, 2400, 1u << 31}), "<|endoftext|><|wide|>");
  EXPECT_EQ(gpt2.decode(Ids{0, 2400}, Specials::skip), "<|wide|>");

  Tokenizer llama3 = Tokenizer::load(tokenizer_fixture("llama3_style.json"));
  EXPECT_EQ(llama3.bos_id(), 3200u);
  EXPECT_EQ(llama3.eos_id(), 3201u);
  Ids with_begin = llama3.encode("a");
  with_begin.insert(with_begin.begin(), 3200);
  EXPECT_EQ(llama3.encode_with_special("a"), with_begin);
  EXPECT_EQ(llama3.encode_with_special(""), Ids{3200});
}

// A byte-level tokenizer of a few tokens, with added tokens and a pre-tokenizer of the test's own.
Tokenizer tiny(std::string_view added, std::string_view pre_tokenizer) {
  return Tokenizer::from_json(
      fmt::format(R"({{"added_tokens": [{}], "pre_tokenizer": {}, "model": {{"type": "BPE", "vocab":
                     {{"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġa": 4, "1": 5}}, "merges": ["a b", "Ġ a"]}}}})",
                  added, pre_tokenizer),
      "tiny");
}

constexpr std::string_view kPlain = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";

// Ids from HF for the same files and texts.
TEST(Tokenizer, AddedTokenFlags) {
  Tokenizer stripping = tiny(R"({"id": 6, "content": "<x>", "lstrip": true, "rstrip": true})", kPlain);
  EXPECT_EQ(stripping.encode("a \u3000<x> \n<x> a"), (Ids{0, 6, 6, 0}));
  Tokenizer single = tiny(R"({"id": 6, "content": "bb", "single_word": true})", kPlain);
  EXPECT_EQ(single.encode("bb abb bb,bb_"), (Ids{6, 2, 3, 1, 2, 6, 1, 1}));
  Tokenizer longest =
      tiny(R"({"id": 6, "content": "<a"}, {"id": 7, "content": "<a>"}, {"id": 8, "content": "a>b"})", kPlain);
  EXPECT_EQ(longest.encode("<a<a>b a>b"), (Ids{6, 7, 1, 2, 8}));
  Tokenizer rounds = tiny(R"({"id": 6, "content": "bab", "normalized": true}, {"id": 7, "content": "aa"})", kPlain);
  EXPECT_EQ(rounds.encode("babaaba bab"), (Ids{6, 7, 1, 0, 2, 6}));
}

TEST(Tokenizer, PrefixSpace) {
  Tokenizer tokenizer = tiny(R"({"id": 6, "content": "<x>"})", R"({"type": "ByteLevel", "add_prefix_space": true})");
  EXPECT_EQ(tokenizer.encode("ab a<x>a a"), (Ids{2, 3, 4, 6, 4, 4}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, SequencesOfPreTokenizers) {
  std::string_view split_b =
      R"({"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": false})";
  std::string_view drop_b = R"({"type": "Split", "pattern": {"Regex": "b+"}, "behavior": "Removed", "invert": false})";
  std::string_view digits = R"({"type": "Digits", "individual_digits": true})";
  auto sequence = [](std::string_view first, std::string_view last) {
    return fmt::format(R"({{"type": "Sequence", "pretokenizers": [{}, {}]}})", first, last);
  };
  std::string_view no_regex = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})";
  std::string_view spaced = R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})";
  EXPECT_EQ(tiny("", sequence(split_b, no_regex)).encode("abab"), (Ids{0, 1, 0, 1}));
  EXPECT_EQ(tiny("", sequence(drop_b, no_regex)).encode("abbab"), (Ids{0, 0}));
  EXPECT_EQ(tiny("", sequence(drop_b, spaced)).encode("abbab"), (Ids{4, 4}));
  EXPECT_EQ(tiny("", sequence(digits, kPlain)).encode("ab 1 1"), (Ids{3, 2, 5, 2, 5}));
}

TEST(Tokenizer, AFailureInABatchReachesTheCaller) {
  Tokenizer tokenizer = tiny("", R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  std::string runaway = std::string(60, 'a') + "b";
  std::vector<std::string_view> documents(40, "ab");
  ThreadTeam team(2);
  EXPECT_EQ(tokenizer.encode_batch(documents, team), std::vector<Ids>(40, Ids{3}));
  documents[33] = runaway;
  EXPECT_THROW(tokenizer.encode_batch(documents, team), UserError);
}

TEST(Tokenizer, BytesWithoutATokenAreDropped) {
  EXPECT_EQ(tiny("", kPlain).encode("a?b\n"), (Ids{0, 1}));
}

// Python: bytes.decode('utf-8', errors='replace').
TEST(Utf8, MendsAsPythonDoes) {
  auto mended = [](std::string_view bytes) {
    std::string out;
    append_mended_utf8(bytes, out);
    return out;
  };
  EXPECT_EQ(mended("plain é 中 😀"), "plain é 中 😀");
  EXPECT_EQ(mended("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(mended("\x80\xBF"), "\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(mended("\xE2\x82z"), "\uFFFDz");
  EXPECT_EQ(mended("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(mended("\xF0\x9F\x98\xE9"), "\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(mended("\xF5\x80"), "\uFFFD\uFFFD");
}

TEST(StreamDecoder, HoldsBackWhatMayBecomeACharacter) {
  Tokenizer tokenizer = Tokenizer::load(tokenizer_fixture("gpt2_style.json"));
  auto id_of_byte = [&](std::string_view name) { return tokenizer.token_id(name).value(); };
  uint32_t e2 = id_of_byte("â"), x82 = id_of_byte("Ĥ"), xac = id_of_byte("¬"), a = id_of_byte("a");
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(e2), "");
  EXPECT_EQ(decoder.push(x82), "");
  EXPECT_EQ(decoder.push(xac), "€");
  EXPECT_EQ(decoder.push(x82), "\uFFFD");
  EXPECT_EQ(decoder.push(e2), "");
  EXPECT_EQ(decoder.push(a), "\uFFFDa");
  EXPECT_EQ(decoder.push(e2), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

}  // namespace
}  // namespace sextant
