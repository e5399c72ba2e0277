// Shapes. A GlobalShape is what the model sees, a LocalShape what one rank holds; they are two C++ types so that
// neither is mistaken for the other, and only mesh/ converts between them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace sextant {

template <class View>
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int dim) const { return dims_[static_cast<size_t>(dim)]; }
  int64_t& operator[](int dim) { return dims_[static_cast<size_t>(dim)]; }
  int64_t last() const { return dims_.back(); }
  std::span<const int64_t> dims() const { return dims_; }

  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  // Elements in all dims but the last: how many rows a kernel walks.
  int64_t rows() const { return dims_.empty() ? 1 : count() / (dims_.back() == 0 ? 1 : dims_.back()); }

  bool operator==(const Shape&) const = default;

  std::string text() const {  // "[2, 3]"; without fmt, which the CUDA compiler cannot read
    std::string out;
    for (int64_t d : dims_) out += (out.empty() ? "" : ", ") + std::to_string(d);
    return "[" + out + "]";
  }

 private:
  std::vector<int64_t> dims_;
};

struct GlobalView;
struct LocalView;
using GlobalShape = Shape<GlobalView>;
using LocalShape = Shape<LocalView>;

}  // namespace sextant
