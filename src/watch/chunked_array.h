// Numbers that are only appended, or cut off at the end: no copy when it grows and no slack beyond one chunk.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace sextant {

template <typename T>
class ChunkedArray {
 public:
  size_t size() const { return size_; }
  T operator[](size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  T& at(size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  T back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique_for_overwrite<T[]>(kChunk));
    ++size_;
    at(size_ - 1) = value;
  }
  void truncate(size_t size) {
    size_ = size;
    chunks_.resize((size + kChunk - 1) / kChunk);
  }
  size_t bytes() const { return chunks_.size() * kChunk * sizeof(T); }

 private:
  static constexpr size_t kChunk = 1024;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace sextant
