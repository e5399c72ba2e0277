// Faults that checks of GEMMs find while they run, and the rule that decides them (algorithm-based fault tolerance,
// after Huang and Abraham 1984, with the random vector of Freivalds 1977). Each row of c = a·b (+ bias, + the previous
// c) is multiplied by a vector x of random signs: c·x must be a·(b·x) + bias·x + c_before·x. That reads each operand
// once and costs O(n²), against O(n³) of the GEMM.
//
// Rounding. With u the unit roundoff of the sums (2⁻²⁴ for f32) and γ_t = t·u / (1 − t·u), an element of c that is a
// sum in which every term passes through at most t roundings, in whatever order, has (Higham 2002, section 3.1)
//     |ĉ_ij − c_ij| ≤ γ_t · M_ij,   M_ij = Σ_k |a_ik|·|b_kj| + |bias_j| + |before_ij|,                              (1)
// plus what underflow may lose, t times the smallest normal number, and u_out·|ĉ_ij| where the sum is narrowed when it
// is stored. A row that looks wrong (below) is computed again in f64, element by element, and is wrong where (1) does
// not hold: no rounding can make a right element wrong, and a flipped bit is found whose change exceeds γ_t·M_ij.
//
// Where the product was added to c, `before` is gone. x is drawn independently of the data, and so of the rounding
// errors e_ij = ĉ_ij − c_ij: Σ_j e_ij·x_j is a sum of independent signs, and exceeds λ·|e_i|₂ with probability
// 2·exp(−λ²/2) at most (Hoeffding 1963). By (1) and the triangle inequality
//     |e_i|₂ ≤ γ_t·(Σ_k |a_ik|·|b_k|₂ + |bias|₂ + |before_i|₂).                                                     (2)
// With λ = 10 a right row is called wrong with probability 4·10⁻²², whatever the data. Sums of the check itself are
// made in f64, and their own rounding, (n + k)·2⁻⁵³ of the sums of magnitudes, is allowed for.
//
// A row looks wrong when c·x is further off than a random walk of rounding errors leads: 8·u·√t·(√(Σ_k a_ik²·|b_k|₂²) +
// |c_i|₂ + |bias|₂ + |before_i|₂). That is no bound and decides nothing: it only chooses the rows on which (1) or (2)
// is tried. A fault below it stays unseen: 8·u·√t of a row's norm.
//
// Values that are not finite, or sums of magnitudes that a right sum could overflow by, say nothing and are passed
// over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/program.h"

namespace sextant {

constexpr double kSpreadOfRow = 8;            // of a random walk, from which on a row looks wrong
constexpr double kHoeffding = 10;             // λ
constexpr double kRoundoffOfCheck = 0x1p-53;  // of the check's own sums

enum class FaultVerdict : uint8_t {
  transient,   // computed again, it is right
  persistent,  // computed again, it is wrong too
};

struct GemmFault {
  int64_t row = 0, column = -1;  // of c; without a column the numbers are sums of the row with random signs
  double got = 0, expected = 0, allowed = 0;
  std::optional<FaultVerdict> verdict = {};  // empty: it was not computed again
};

// Throws Corruption: the op of this rank, at `place`, has computed a wrong result.
[[noreturn]] void end_by_fault(const GemmFault& fault, const Op& op, int rank, const std::string& place);

}  // namespace sextant
