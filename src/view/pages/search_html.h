// What a search for layouts found as one HTML file: the best of them, all that were kept with where their time goes,
// and the front of memory against time. Every figure is read from the SearchResult.
#pragma once

#include <string>

#include "search/search.h"
#include "view/page.h"

namespace sextant {

std::string search_html(const SearchResult& result, const PageOrigin& origin);

}  // namespace sextant
