#include "data/formats/open_text.h"

#include <string>

#include "data/text_encoding.h"

namespace sextant {

namespace {

// Looks at the front of a stream before it gives it out.
class TextStream : public ByteStream {
 public:
  TextStream(std::filesystem::path path, std::unique_ptr<ByteStream> source)
      : path_(std::move(path)), source_(std::move(source)) {}

  size_t read(std::span<char> out) override {
    if (!looked_) look_at_front();
    if (given_ == front_.size()) return source_->read(out);
    size_t n = front_.copy(out.data(), out.size(), given_);
    given_ += n;
    return n;
  }

  int64_t consumed() const override { return source_->consumed(); }

 private:
  void look_at_front() {
    constexpr size_t kFront = 4096;
    looked_ = true;
    front_.resize(kFront);
    size_t size = 0;
    while (size < kFront) {
      size_t n = source_->read({front_.data() + size, kFront - size});
      if (n == 0) break;
      size += n;
    }
    front_.resize(size);
    if (std::string_view encoding = wide_encoding(front_); !encoding.empty())
      throw UserError(complaint_about_encoding(path_, path_.string(), 0, encoding));
  }

  std::filesystem::path path_;
  std::unique_ptr<ByteStream> source_;
  bool looked_ = false;
  std::string front_;
  size_t given_ = 0;  // of front_
};

}  // namespace

std::unique_ptr<ByteStream> open_text(const std::filesystem::path& path) {
  return std::make_unique<TextStream>(path, open_stream(path, compression_of(path)));
}

}  // namespace sextant
