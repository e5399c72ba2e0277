// How often operator new has been called in this program so far, by any thread.
#pragma once

namespace sextant {

int allocation_count();

}  // namespace sextant
