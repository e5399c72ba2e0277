// Splitters cut text into pieces, the units inside which byte pairs are merged.
// Enters: valid UTF-8. Leaves: views into it, in order, none empty. A splitter never changes after it is made, so
// threads may share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sextant {

// Where a splitter stands in a text; made anew for every text.
struct SplitCursor {
  enum class Text : uint8_t { unseen, usual, unusual };

  size_t at = 0;             // byte where the next piece begins
  Text text = Text::unseen;  // what the splitter found out about the text as a whole
};

class Splitter {
 public:
  virtual ~Splitter() = default;

  // Cuts `text` from `cursor` on, until `pieces` (room for two at least) is full or the text ends. Returns how many it
  // wrote, and moves the cursor to where the next call must go on; 0 pieces means that the text is done.
  virtual size_t cut(std::string_view text, SplitCursor& cursor, std::span<std::string_view> pieces) const = 0;

  // Whether pieces are about as long as words, so that they come again and are worth remembering.
  virtual bool cuts_words() const { return false; }
};

// Which parts become pieces: HF's behaviours "Isolated", "Removed", "Removed" with "invert", "MergedWithPrevious",
// "MergedWithNext" and "Contiguous".
enum class SplitKeep { everything, gaps_only, matches_only, joined_to_previous, joined_to_next, runs_joined };

enum class PatternKind { regex, literal };

struct SplitPattern {
  std::string text;
  PatternKind kind = PatternKind::regex;
  SplitKeep keep = SplitKeep::everything;
};

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view kCl100kPattern =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n])"
    R"(|\s+(?!\S)|\s)";
inline constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// DeepSeek-V3 cuts three times. Its newlines are characters, not escapes.
inline constexpr std::string_view kDeepSeekNumbers = R"(\p{N}{1,3})";
inline constexpr std::string_view kDeepSeekIdeographs = "[一-龥\u3040-ゟ゠-ヿ]+";
inline constexpr std::string_view kDeepSeekWords = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
                                                   "\r\n"
                                                   R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
                                                   "\r\n"
                                                   R"(]*|\s*[)"
                                                   "\r\n"
                                                   R"(]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kBloomPattern = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
inline constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";  // Falcon

// A splitter written by hand where the pattern is one of the above, else one that runs PCRE2.
// UserError at `place` where PCRE2 cannot compile the pattern or split_translate.h refuses it.
std::unique_ptr<Splitter> make_splitter(const SplitPattern& pattern, std::string_view place);

// The parts of make_splitter, apart. `known_splitter` is null for a pattern, or a way to keep pieces, that it does not
// know.
std::unique_ptr<Splitter> known_splitter(std::string_view pattern, SplitKeep keep = SplitKeep::everything);
std::unique_ptr<Splitter> pcre_splitter(const SplitPattern& pattern, std::string_view place);

// Those that are written by hand beside the first four.
std::unique_ptr<Splitter> o200k_splitter();
std::unique_ptr<Splitter> tekken_splitter();
std::unique_ptr<Splitter> deepseek_number_splitter();
std::unique_ptr<Splitter> deepseek_ideograph_splitter();
std::unique_ptr<Splitter> deepseek_word_splitter();
std::unique_ptr<Splitter> bloom_splitter();
std::unique_ptr<Splitter> three_digit_splitter();

// Runs of numbers apart from all else (HF's "Digits"), whole or digit by digit.
enum class DigitRuns { whole, single };
std::unique_ptr<Splitter> digit_splitter(DigitRuns runs);

// Characters of a kind, each a match by itself: punctuation, white space (HF's "Punctuation", "WhitespaceSplit"), or a
// single character ("CharDelimiterSplit", "Metaspace").
std::unique_ptr<Splitter> punctuation_splitter(SplitKeep keep);
std::unique_ptr<Splitter> white_space_splitter();
std::unique_ptr<Splitter> character_splitter(char32_t character, SplitKeep keep);

// Runs of word characters and runs of what is neither that nor white space (HF's "Whitespace").
std::unique_ptr<Splitter> word_splitter();

}  // namespace sextant
