#include "exec/cpu/kernels/gemm_check.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "exec/cpu/kernels/blocks.h"
#include "exec/cpu/kernels/vector_math_weighted_sums.h"
#include "targets/gemm_check_sizes.h"

namespace sextant::cpu {

namespace {

constexpr int64_t kRowsOfCheck = 16;     // in one task
constexpr int64_t kColumnsOfCheck = 64;  // of stored lines: several cache lines of each

template <class T>
constexpr double kRoundoff = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;

// Of each of the lines [begin, end), `width` numbers of them.
template <class T>
void sums_of_lines(const WeightedLines<T>& x, int64_t width, int64_t begin, int64_t end, SumWeights weights,
                   SumArrays out) {
  for (int64_t line = begin; line < end; ++line) {
    WeightedSums found = weighted_sums(x.data + line * x.stride, weights, width);
    out.sums[line] = found.sum;
    out.squares[line] = found.squares;
  }
}

// How a product is made and its check cut into pieces: by a team, or inside a task.
struct ByTeam {
  ThreadTeam& team;
  std::byte* workspace;

  template <class T>
  void product(const Gemm<T>& gemm) const {
    multiply(gemm, team, workspace);
  }
  template <class Body>
  void pieces(int64_t count, int64_t block, const Body& body) const {
    for_blocks(team, count, block, body);
  }
};

struct InTask {
  std::byte* scratch;

  template <class T>
  void product(const Gemm<T>& gemm) const {
    multiply(gemm, scratch);
  }
  template <class Body>
  void pieces(int64_t count, int64_t, const Body& body) const {
    body(int64_t{0}, count);
  }
};

template <class T>
void flip_bit(T& x, int from_exponent) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  x = std::bit_cast<T>(std::bit_cast<Bits>(x) ^ (Bits{1} << (kMantissa + from_exponent)));
}

template <class T, class How>
class CheckedProduct {
 public:
  CheckedProduct(const Gemm<T>& gemm, GemmCheck& check, const How& how, std::byte* scratch)
      : gemm_(gemm), check_(check), how_(how) {
    GemmCheckSizes at(gemm.m, gemm.n, gemm.k);
    auto doubles = [&](int64_t offset) { return reinterpret_cast<double*>(scratch + offset); };
    signs_ = doubles(0);
    b_sums_ = doubles(at.b_sums);
    b_squares_ = doubles(at.b_squares);
    expected_ = doubles(at.expected);
    squares_ = doubles(at.squares);
    before_ = doubles(at.before);
    before_squares_ = doubles(at.before_squares);
  }

  void run() {
    draw_signs();
    if (adds()) sum_what_is_there();
    make(gemm_);
    sum_operands();
    for (int64_t row = first_suspect(); row < gemm_.m && !check_.found.load(std::memory_order_relaxed); ++row)
      if (looks_wrong(row)) decide(row);
  }

  // The product alone, with a bit of it flipped where a drill asks for it.
  void make(const Gemm<T>& gemm) {
    how_.product(gemm);
    int left = check_.flips.load(std::memory_order_relaxed);
    if (left == 0 || !check_.flips.compare_exchange_strong(left, left - 1)) return;
    // Of the largest number: a bit of one near zero is of no significance.
    T* largest = gemm.c;
    for (int64_t row = 0; row < gemm.m; ++row)
      for (int64_t j = 0; j < gemm.n; ++j)
        if (T* at = gemm.c + row * gemm.c_stride + j; std::fabs(*at) > std::fabs(*largest)) largest = at;
    flip_bit(*largest, check_.flipped_bit);
  }

 private:
  bool adds() const { return gemm_.write != Write::over; }

  void draw_signs() {
    for (int64_t j = 0; j < gemm_.n; j += 64) {
      uint64_t bits = check_.signs.bits(static_cast<uint64_t>(j / 64));
      for (int64_t i = j; i < std::min(gemm_.n, j + 64); ++i) signs_[i] = (bits >> (i - j) & 1) != 0 ? 1.0 : -1.0;
    }
  }

  void sum_what_is_there() {
    how_.pieces(gemm_.m, kRowsOfCheck, [&](int64_t begin, int64_t end) {
      sums_of_lines<T>({gemm_.c, gemm_.c_stride, gemm_.m}, gemm_.n, begin, end, {signs_}, {before_, before_squares_});
    });
  }

  // b·x with the squared norms of b's rows, then a·(b·x) with Σ a²·|b_k|².
  void sum_operands() {
    const Matrix<T>&a = gemm_.a, &b = gemm_.b;
    const SumArrays of_b{b_sums_, b_squares_}, of_product{expected_, squares_};
    how_.pieces(gemm_.k, kColumnsOfCheck, [&](int64_t begin, int64_t end) {
      if (b.column_stride == 1)
        sums_of_lines<T>({b.data, b.row_stride, gemm_.k}, gemm_.n, begin, end, {signs_}, of_b);
      else
        weighted_column_sums(WeightedLines<T>{b.data, b.column_stride, gemm_.n}, begin, end, {signs_}, of_b);
    });
    how_.pieces(gemm_.m, a.column_stride == 1 ? kRowsOfCheck : kColumnsOfCheck, [&](int64_t begin, int64_t end) {
      if (a.column_stride == 1)
        sums_of_lines<T>({a.data, a.row_stride, gemm_.m}, gemm_.k, begin, end, {b_sums_, b_squares_}, of_product);
      else
        weighted_column_sums(WeightedLines<T>{a.data, a.column_stride, gemm_.k}, begin, end, {b_sums_, b_squares_},
                             of_product);
    });
    if (gemm_.bias) bias_ = weighted_sums(gemm_.bias, {signs_}, gemm_.n);
  }

  double expected_sum(int64_t row) const { return expected_[row] + bias_.sum + (adds() ? before_[row] : 0.0); }

  WeightedSums sums_of_c(int64_t row) const { return weighted_sums(gemm_.c + row * gemm_.c_stride, {signs_}, gemm_.n); }

  bool looks_wrong(int64_t row) const {
    WeightedSums got = sums_of_c(row);
    double norms = std::sqrt(squares_[row]) + std::sqrt(got.squares) + std::sqrt(bias_.squares) +
                   (adds() ? std::sqrt(before_squares_[row]) : 0.0);
    auto t = static_cast<double>(roundings(gemm_)), own = static_cast<double>(gemm_.n + gemm_.k);
    double usual = kSpreadOfRow * (kRoundoff<T> * std::sqrt(t) + kRoundoffOfCheck * std::sqrt(own)) * norms + least();
    return !(std::fabs(got.sum - expected_sum(row)) <= usual);
  }

  // The first row that looks wrong; m, as nearly always: none does.
  int64_t first_suspect() const {
    std::atomic<int64_t> first{gemm_.m};
    how_.pieces(gemm_.m, kRowsOfCheck, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (!looks_wrong(row)) continue;
        for (int64_t least = first.load(); row < least && !first.compare_exchange_weak(least, row);) continue;
        return;
      }
    });
    return first.load();
  }

  // Upper bound of the error of a sum due to underflow.
  double least() const {
    return static_cast<double>(gemm_.n * roundings(gemm_)) * static_cast<double>(std::numeric_limits<T>::min());
  }

  // Relative to the magnitudes: rounding of the product, and of f64 sums of `terms` terms that it is compared with.
  double relative(int64_t terms) const {
    double t = static_cast<double>(roundings(gemm_)) * kRoundoff<T>;
    return t / (1 - t) + 2 * static_cast<double>(terms + 4) * kRoundoffOfCheck;
  }

  void decide(int64_t row) {
    GemmFault fault{.row = row};
    bool wrong = adds() ? sum_is_wrong(row, fault) : has_wrong_element(gemm_, row, fault);
    if (!wrong) return;
    fault.verdict = is_wrong_again(row) ? FaultVerdict::persistent : FaultVerdict::transient;
    if (!check_.found.exchange(true)) check_.fault = fault;
  }

  // (1), element by element.
  bool has_wrong_element(const Gemm<T>& gemm, int64_t row, GemmFault& fault) const {
    double worst = 0;
    for (int64_t j = 0; j < gemm.n; ++j) {
      double exact = gemm.bias ? static_cast<double>(gemm.bias[j]) : 0.0, size = std::fabs(exact);
      for (int64_t k = 0; k < gemm.k; ++k) {
        double term = static_cast<double>(*gemm.a.at(row, k)) * static_cast<double>(*gemm.b.at(k, j));
        exact += term;
        size += std::fabs(term);
      }
      if (!may_be_judged(size)) continue;
      auto got = static_cast<double>(gemm.c[row * gemm.c_stride + j]);
      double allowed = relative(gemm.k) * size + least(), off = std::fabs(got - exact);
      if (off <= allowed) continue;
      double excess = std::isfinite(off) ? off / allowed : std::numeric_limits<double>::infinity();
      if (excess < worst) continue;
      worst = excess;
      fault.column = j;
      fault.got = got;
      fault.expected = exact;
      fault.allowed = allowed;
    }
    return worst > 0;
  }

  // (2).
  bool sum_is_wrong(int64_t row, GemmFault& fault) const {
    double norms = std::sqrt(bias_.squares) + std::sqrt(before_squares_[row]);
    for (int64_t k = 0; k < gemm_.k; ++k)
      norms += std::fabs(static_cast<double>(*gemm_.a.at(row, k))) * std::sqrt(b_squares_[k]);
    // |v|₁ ≤ √n·|v|₂: the check's own sums.
    double all = std::sqrt(static_cast<double>(gemm_.n)) * norms;
    if (!may_be_judged(all)) return false;
    auto t = static_cast<double>(roundings(gemm_)) * kRoundoff<T>;
    fault.got = sums_of_c(row).sum;
    fault.expected = expected_sum(row);
    fault.allowed = kHoeffding * t / (1 - t) * norms +
                    4 * static_cast<double>(gemm_.n + gemm_.k + 4) * kRoundoffOfCheck * all + least();
    return !(std::fabs(fault.got - fault.expected) <= fault.allowed);
  }

  static bool may_be_judged(double magnitudes) {
    return magnitudes < static_cast<double>(std::numeric_limits<T>::max()) / 2;
  }

  // Into memory of its own: the run ends here, and what c held is gone.
  bool is_wrong_again(int64_t row) {
    std::vector<T> c(static_cast<size_t>(gemm_.m * gemm_.n));
    Gemm<T> again = gemm_;
    again.c = c.data();
    again.c_stride = gemm_.n;
    again.write = Write::over;
    make(again);
    GemmFault ignored;
    return has_wrong_element(again, row, ignored);
  }

  const Gemm<T>& gemm_;
  GemmCheck& check_;
  const How& how_;
  double *signs_, *b_sums_, *b_squares_, *expected_, *squares_, *before_, *before_squares_;
  WeightedSums bias_;
};

template <class T, class How>
void run_with(GemmCheck* check, const Gemm<T>& gemm, const How& how, std::byte* scratch) {
  if (!check || gemm.m == 0 || gemm.n == 0 || gemm.k == 0) return how.product(gemm);
  CheckedProduct<T, How> product(gemm, *check, how, scratch);
  check->verifies ? product.run() : product.make(gemm);
}

}  // namespace

void multiply_checked(const Gemm<float>& gemm, const KernelCall& call, std::byte* workspace) {
  run_with(call.check, gemm, ByTeam{call.team, workspace}, call.check ? call.check->scratch : nullptr);
}
void multiply_checked(const Gemm<double>& gemm, const KernelCall& call, std::byte* workspace) {
  run_with(call.check, gemm, ByTeam{call.team, workspace}, call.check ? call.check->scratch : nullptr);
}
void multiply_checked(const Gemm<float>& gemm, const KernelCall& call, std::byte* scratch, std::byte* check_scratch) {
  run_with(call.check, gemm, InTask{scratch}, check_scratch);
}
void multiply_checked(const Gemm<double>& gemm, const KernelCall& call, std::byte* scratch, std::byte* check_scratch) {
  run_with(call.check, gemm, InTask{scratch}, check_scratch);
}

}  // namespace sextant::cpu
