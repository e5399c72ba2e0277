// Results of a layout search as one HTML file: the best layouts, all layouts that were kept with their times by part,
// and the Pareto front of memory and time. Every figure is read from the SearchResult.
#pragma once

#include <string>

#include "search/search.h"
#include "view/page.h"

namespace sextant {

std::string search_html(const SearchResult& result, const PageOrigin& origin);

}  // namespace sextant
