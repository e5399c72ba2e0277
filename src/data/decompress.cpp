#include "data/decompress.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/path_error.h"
#include "base/units.h"

namespace sextant {

namespace fs = std::filesystem;

namespace {

constexpr size_t kInputBytes = size_t{256} << 10;

class FileStream : public ByteStream {
 public:
  explicit FileStream(const fs::path& path) : path_(path.string()), file_(::fdopen(open_for_reading(path), "rb")) {
    if (!file_) throw_unreadable(path, errno, "a readable file");
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // readers above ask for large pieces already
  }

  size_t read(std::span<char> out) override {
    size_t n = std::fread(out.data(), 1, out.size(), file_.get());
    if (n < out.size() && std::ferror(file_.get()))
      throw RunError(path_, fmt::format("cannot read on after byte {}: {}", consumed_, std::strerror(errno)));
    consumed_ += static_cast<int64_t>(n);
    return n;
  }

  int64_t consumed() const override { return consumed_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t consumed_ = 0;
};

class MemoryStream : public ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}

  size_t read(std::span<char> out) override {
    size_t n = bytes_.copy(out.data(), out.size(), at_);
    at_ += n;
    return n;
  }

  int64_t consumed() const override { return static_cast<int64_t>(at_); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<ByteStream> source) : source_(std::move(source)), input_(kInputBytes) {
    constexpr int kGzipOnly = 16;  // added to the window bits: a gzip header and checksum are demanded
    if (inflateInit2(&state_, MAX_WBITS + kGzipOnly) != Z_OK) throw RunError("gzip", "cannot start decompression");
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(std::span<char> out) override {
    while (!out.empty()) {
      if (state_.avail_in == 0 && !refill()) return 0;
      if (member_ended_) {  // a gzip file may be several members, one after the other, and zeros that fill up a block
        skip_padding();
        if (state_.avail_in == 0) continue;
        inflateReset(&state_);
        member_ended_ = false;
      }
      auto room = static_cast<uInt>(std::min(out.size(), kInputBytes * 16));
      state_.next_out = reinterpret_cast<Bytef*>(out.data());
      state_.avail_out = room;
      int result = inflate(&state_, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END)
        throw StreamError(fmt::format("the gzip stream is damaged at compressed byte {} ({})",
                                      source_->consumed() - state_.avail_in, state_.msg ? state_.msg : "no detail"));
      member_ended_ = result == Z_STREAM_END;
      if (state_.avail_out < room) return room - state_.avail_out;
    }
    return 0;
  }

  int64_t consumed() const override { return source_->consumed(); }

 private:
  // Zeros after the last member, as tapes and block devices leave them, are none of the data; gzip ignores them too.
  void skip_padding() {
    for (; state_.avail_in > 0 && *state_.next_in == 0; ++state_.next_in, --state_.avail_in) padded_ = true;
    if (padded_ && state_.avail_in > 0)
      throw StreamError(
          fmt::format("the gzip stream is damaged at compressed byte {} (zeros follow a member, and then other bytes)",
                      source_->consumed() - state_.avail_in));
  }

  bool refill() {
    size_t n = source_->read(input_);
    if (n == 0 && !member_ended_)
      throw StreamError(fmt::format("the gzip stream is cut short at compressed byte {}", source_->consumed()));
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  std::unique_ptr<ByteStream> source_;
  std::vector<char> input_;
  z_stream state_{};
  bool member_ended_ = false;
  bool padded_ = false;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(std::unique_ptr<ByteStream> source)
      : source_(std::move(source)), input_(kInputBytes), state_(ZSTD_createDStream()) {
    if (!state_) throw RunError("zstd", "cannot start decompression");
    // zstd itself stops at 128 MiB unless told: files made with --long=28 to --long=31 need more.
    ZSTD_bounds window = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, window.upperBound);
    largest_window_ = int64_t{1} << window.upperBound;
  }

  size_t read(std::span<char> out) override {
    while (!out.empty()) {
      if (pending_.pos == pending_.size && !refill()) return 0;
      ZSTD_outBuffer output{out.data(), out.size(), 0};
      size_t result = ZSTD_decompressStream(state_.get(), &output, &pending_);
      if (ZSTD_isError(result)) fail(result);
      frame_ended_ = result == 0;  // and all its output is out: until then zstd leaves the last byte of input unread
      if (output.pos > 0) return output.pos;
    }
    return 0;
  }

  int64_t consumed() const override { return source_->consumed(); }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ZSTD_freeDStream(state); }
  };

  [[noreturn]] void fail(size_t result) const {
    int64_t at = source_->consumed() - static_cast<int64_t>(pending_.size - pending_.pos);
    switch (ZSTD_getErrorCode(result)) {
      case ZSTD_error_frameParameter_windowTooLarge:
        throw StreamError(
            fmt::format("the zstd frame near compressed byte {} needs a window over {}, the most that is supported; "
                        "compress it with --long=31 or less",
                        at, human(Bytes{largest_window_})));
      case ZSTD_error_memory_allocation:
        throw StreamError(fmt::format(
            "the zstd frame near compressed byte {} needs a window for which there is not enough memory", at));
      default:
        throw StreamError(
            fmt::format("the zstd stream is damaged near compressed byte {} ({})", at, ZSTD_getErrorName(result)));
    }
  }

  bool refill() {
    size_t n = source_->read(input_);
    if (n == 0 && !frame_ended_)
      throw StreamError(fmt::format("the zstd stream is cut short at compressed byte {}", source_->consumed()));
    pending_ = {input_.data(), n, 0};
    return n > 0;
  }

  std::unique_ptr<ByteStream> source_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer pending_{nullptr, 0, 0};
  int64_t largest_window_ = 0;
  bool frame_ended_ = false;
};

std::unique_ptr<ByteStream> decompressed(std::unique_ptr<ByteStream> source, Compression compression) {
  switch (compression) {
    case Compression::none:
      return source;
    case Compression::gzip:
      return std::make_unique<GzipStream>(std::move(source));
    case Compression::zstd:
      return std::make_unique<ZstdStream>(std::move(source));
  }
  BUG("unknown compression {}", static_cast<int>(compression));
}

}  // namespace

Compression compression_of(const fs::path& path) {
  if (path.extension() == ".gz") return Compression::gzip;
  if (path.extension() == ".zst") return Compression::zstd;
  return Compression::none;
}

std::unique_ptr<ByteStream> open_stream(const fs::path& path, Compression compression) {
  return decompressed(std::make_unique<FileStream>(path), compression);
}

std::unique_ptr<ByteStream> open_stream(std::string_view bytes, Compression compression) {
  return decompressed(std::make_unique<MemoryStream>(bytes), compression);
}

}  // namespace sextant
