#include "data/foreign_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "data/decompress.h"
#include "data/formats/document_format.h"
#include "text/unicode/unicode_utf8.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// In `how`, {0} is the file's path, {1} the same without its extension.
struct ForeignKind {
  std::string_view extensions;  // with a space after each
  std::string_view what;
  std::string_view how;
};

constexpr std::string_view kUnpack = "unpack it and give the text files in it, or their folder";
constexpr std::string_view kCompress = "compress with gzip (.gz) or zstd (.zst) instead";
constexpr std::string_view kExport =
    "read it with the library that wrote it, and write JSON lines: {{\"text\": \"...\"}} on each line";

constexpr std::array kKinds{
    ForeignKind{
        ".npy ", "a NumPy array",
        "python3 -c \"import numpy as n; n.load('{0}').astype('<u4').tofile('{1}.u32')\" makes a token file of it"},
    ForeignKind{".npz ", "an archive of NumPy arrays",
                "write the array of token ids with astype('<u4').tofile('{1}.u32')"},
    ForeignKind{".pkl .pickle .pt .pth ", "a Python pickle, which can run code when it is read", kExport},
    ForeignKind{".h5 .hdf5 .tfrecord .avro .mds .sqlite .db ", "a container of records", kExport},
    ForeignKind{".warc .wet ", "a web archive", kExport},
    ForeignKind{".zip .tar .tgz .7z .rar ", "an archive of files", kUnpack},
    ForeignKind{".bz2 .xz .lz4 .lzma .br ", "compressed in a way that is not read", kCompress},
    ForeignKind{".safetensors .gguf ", "model weights, not data", "name a model's directory with model.from"},
    ForeignKind{".md .text .html .xml .rst .tex .py .c .cpp ", "text under another name",
                "name it .txt, or set data.format = \"text\""},
};

std::string readable_kinds() {
  return fmt::format("text ({}) or tokens (.bin, .u16, .u32, .ds or .idx)", text_file_names());
}

struct LooksLike {
  std::string_view what, extension, format;  // data.format of it; empty: there is none
};

// By the first characters of a file of text.
LooksLike looks_like(std::string_view front) {
  constexpr std::string_view kSpace = " \t\r\n";
  auto past_space = [&](size_t from) { return std::min(front.find_first_not_of(kSpace, from), front.size()); };
  const size_t begin = past_space(0);
  if (front.substr(begin).starts_with('{')) return {"JSON lines", ".jsonl", "jsonl"};
  if (front.substr(begin).starts_with('[') && front.substr(past_space(begin + 1)).starts_with('{'))
    return {"an array of JSON", ".json", ""};
  return {"text", ".txt", "text"};
}

}  // namespace

Complaint complaint_about_unknown(const fs::path& path, std::span<const std::byte> bytes) {
  constexpr size_t kFront = 4096;
  std::string_view front(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kFront));
  // A character may be cut by the end of what is looked at.
  size_t whole = 0;
  Utf8Step step{Utf8State::valid, 0};
  for (; whole < front.size() && (step = step_utf8(front.substr(whole))).state == Utf8State::valid;) whole += step.size;
  const bool text = !front.empty() && step.state != Utf8State::broken && front.find('\0') == std::string_view::npos;
  Complaint complaint{.place = path.string(),
                      .got = "the name does not say what kind of file this is",
                      .expected = readable_kinds(),
                      .hint = "set data.format: \"text\", \"jsonl\", \"tokens-u16\", \"tokens-u32\" or \"megatron\""};
  if (front.empty()) complaint.got = "the file is empty, and its name does not say what kind of file it is";
  if (!text) return complaint;
  const LooksLike kind = looks_like(front);
  complaint.got += fmt::format("; it looks like {}", kind.what);
  complaint.hint = kind.format.empty()
                       ? fmt::format("name it {}", kind.extension)
                       : fmt::format("name it {}, or set data.format = \"{}\"", kind.extension, kind.format);
  return complaint;
}

std::optional<Complaint> complaint_about_kind(const fs::path& path) {
  const std::string extension = data_extension_of(path);
  if (extension.empty()) return std::nullopt;
  if (const DocumentFormat* format = text_format_inside(path); format && !text_format_of(path))
    return Complaint{.place = path.string(),
                     .got = fmt::format("a {} file is not read through {}", format->name, path.extension().string()),
                     .expected = readable_kinds(),
                     .hint = "unpack it: this format is compressed inside"};
  for (const ForeignKind& kind : kKinds) {
    if (kind.extensions.find(extension + ' ') == std::string_view::npos) continue;
    fs::path stem = compression_of(path) == Compression::none ? path : path.parent_path() / path.stem();
    stem.replace_extension();
    return Complaint{.place = path.string(),
                     .got = fmt::format("this is {} ({}), which is not read", kind.what, extension),
                     .expected = readable_kinds(),
                     .hint = fmt::format(fmt::runtime(kind.how), path.string(), stem.string())};
  }
  return std::nullopt;
}

}  // namespace sextant
