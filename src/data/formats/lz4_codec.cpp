#ifdef SEXTANT_LZ4
#include <lz4.h>
#include <lz4frame.h>
#endif

#include <memory>

#include "data/formats/block_bounds.h"
#include "data/formats/byte_reader.h"

namespace sextant {

#ifdef SEXTANT_LZ4

namespace {

constexpr uint64_t kMostOfLz4 = 255;  // a byte of a copy's length adds up to 255

// Both at most kMaxBlockBytes. How many bytes came.
size_t decode_lz4_block(std::string_view block, std::span<char> room) {
  int came =
      LZ4_decompress_safe(block.data(), room.data(), static_cast<int>(block.size()), static_cast<int>(room.size()));
  if (came < 0) throw StreamError(fmt::format("the LZ4 block is damaged, or holds more than {} bytes", room.size()));
  return static_cast<size_t>(came);
}

uint32_t big_endian(ByteReader& in) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | in.byte();
  return value;
}

class Lz4Frame {
 public:
  explicit Lz4Frame(std::string_view bytes) : bytes_(bytes) {
    LZ4F_dctx* context = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
      throw StreamError("there is no memory to decompress LZ4");
    context_.reset(context);
    LZ4F_frameInfo_t frame{};
    size_t used = bytes_.size();
    wanted_ = checked(LZ4F_getFrameInfo(context, &frame, bytes_.data(), &used));
    bytes_.remove_prefix(used);
    if (frame.frameType == LZ4F_skippableFrame) throw StreamError("an LZ4 frame of other data, which is not read");
    if (frame.dictID != 0) throw StreamError("an LZ4 frame with a dictionary, which is not read");
  }

  size_t read(std::span<char> room) {
    while (wanted_ > 0) {
      if (bytes_.empty()) throw StreamError("the LZ4 frame is cut short");
      size_t used = bytes_.size(), came = room.size();
      wanted_ = checked(LZ4F_decompress(context_.get(), room.data(), &came, bytes_.data(), &used, nullptr));
      bytes_.remove_prefix(used);
      if (came > 0 || (used == 0 && wanted_ > 0)) return came;
    }
    return 0;
  }

  size_t left() const { return bytes_.size(); }  // after the frame, once read() has given 0

 private:
  struct Free {
    void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
  };

  static size_t checked(size_t result) {
    if (LZ4F_isError(result))
      throw StreamError(fmt::format("the LZ4 frame is damaged ({})", LZ4F_getErrorName(result)));
    return result;
  }

  std::string_view bytes_;
  std::unique_ptr<LZ4F_dctx, Free> context_;
  size_t wanted_ = 0;  // bytes that the library expects next; 0 at the frame's end
};

}  // namespace

void decode_lz4_raw(std::string_view block, uint64_t size, std::string& out) {
  check_expansion(block, size, kMostOfLz4);
  out.resize(static_cast<size_t>(size));
  if (decode_lz4_block(block, out) != size) refuse_block_size(size);
}

// The size of a piece, then blocks, each after its stored size, until they hold so many bytes; both big-endian.
void decode_lz4_hadoop(std::string_view block, uint64_t size, std::string& out) {
  check_expansion(block, size, kMostOfLz4);
  out.resize(static_cast<size_t>(size));
  std::span<char> room(out);
  ByteReader in(block);
  while (in.left() > 0) {
    size_t piece = big_endian(in);
    if (piece > room.size()) refuse_block_size(size);
    while (piece > 0) {
      uint32_t stored = big_endian(in);
      size_t came = decode_lz4_block(in.take(stored), room.first(piece));
      room = room.subspan(came);
      piece -= came;
    }
  }
  if (!room.empty()) refuse_block_size(size);
}

void decode_lz4_frame(std::string_view block, uint64_t size, std::string& out) {
  check_block_size(block, size);
  Lz4Frame frame(block);
  read_block(size, out, [&](std::span<char> room) { return frame.read(room); });
  if (frame.left() > 0) throw StreamError(fmt::format("{} bytes follow the LZ4 frame", frame.left()));
}

#else

namespace {

[[noreturn]] void refuse_lz4() {
  refuse_without_library("LZ4", "liblz4", "liblz4-dev");
}

}  // namespace

void decode_lz4_raw(std::string_view, uint64_t, std::string&) {
  refuse_lz4();
}

void decode_lz4_hadoop(std::string_view, uint64_t, std::string&) {
  refuse_lz4();
}

void decode_lz4_frame(std::string_view, uint64_t, std::string&) {
  refuse_lz4();
}

#endif

}  // namespace sextant
