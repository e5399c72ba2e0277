#include "data/foreign_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "data/decompress.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

// In `how`, {0} is the file's path, {1} the same without its extension, {2} the extension without its dot.
struct ForeignKind {
  std::string_view extensions;  // with a space after each
  std::string_view what;
  std::string_view how;
};

constexpr std::string_view kTable =
    "python3 -c \"import pandas as p; p.read_{2}('{0}').to_json('{1}.jsonl', orient='records', lines=True)\" makes "
    "JSON lines of it";
constexpr std::string_view kUnpack = "unpack it and give the text files in it, or their folder";
constexpr std::string_view kCompress = "compress with gzip (.gz) or zstd (.zst) instead";
constexpr std::string_view kExport =
    "read it with the library that wrote it, and write JSON lines: {{\"text\": \"...\"}} on each line";

constexpr std::array kKinds{
    ForeignKind{".parquet ", "a Parquet table", kTable},
    ForeignKind{
        ".arrow ", "an Arrow table",
        "python3 -c \"import datasets as d; d.Dataset.from_file('{0}').to_json('{1}.jsonl')\" makes JSON lines of it"},
    ForeignKind{".feather ", "a Feather table", kTable},
    ForeignKind{".csv ", "a table of comma-separated values", kTable},
    ForeignKind{".tsv ", "a table of tab-separated values",
                "python3 -c \"import pandas as p; p.read_csv('{0}', sep='\\t').to_json('{1}.jsonl', orient='records', "
                "lines=True)\" "
                "makes JSON lines of it"},
    ForeignKind{".json ", "a JSON document",
                "jq -c '.[]' '{0}' > '{1}.jsonl' makes JSON lines of an array; a file that has an object on every line "
                "already need only "
                "be named .jsonl, or read with data.format = \"jsonl\""},
    ForeignKind{".ndjson ", "JSON lines under another name", "name it .jsonl, or set data.format = \"jsonl\""},
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

std::string extension_of(const fs::path& path) {
  fs::path name = compression_of(path) == Compression::none ? path : path.stem();
  std::string extension = name.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace

std::optional<Complaint> complaint_about_kind(const fs::path& path) {
  const std::string extension = extension_of(path);
  if (extension.empty()) return std::nullopt;
  for (const ForeignKind& kind : kKinds) {
    if (kind.extensions.find(extension + ' ') == std::string_view::npos) continue;
    fs::path stem = compression_of(path) == Compression::none ? path : path.parent_path() / path.stem();
    stem.replace_extension();
    std::string reader = extension.substr(1);  // as pandas names it
    return Complaint{
        .place = path.string(),
        .got = fmt::format("this is {} ({}), which is not read", kind.what, extension),
        .expected = "text (.txt or .jsonl, also with .gz or .zst after it) or tokens (.bin, .u16, .u32, .ds or .idx)",
        .hint = fmt::format(fmt::runtime(kind.how), path.string(), stem.string(), reader)};
  }
  return std::nullopt;
}

}  // namespace sextant
