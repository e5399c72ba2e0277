// How well predictions hold against published runs, as one HTML file: the errors, every run as a mark of predicted
// against measured, errors by source, device and size, what is not predicted and why, and what was assumed where a
// source is silent.
#pragma once

#include <string>

#include "validate/validation_figures.h"
#include "view/page.h"

namespace sextant {

// `validation` holds the predictions that `fitted` sums up; `tables` are the errors without any fitted figure.
std::string validation_html(const Validation& validation, const ValidationFigures& tables,
                            const ValidationFigures& fitted, const PageOrigin& origin);

}  // namespace sextant
