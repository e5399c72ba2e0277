#include "mesh/collective.h"

namespace sextant {

std::string_view name_of(Collective collective) {
  constexpr std::string_view kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                         "broadcast",  "shift",      "send",           "receive"};
  return kNames[static_cast<size_t>(collective)];
}

int64_t elements_sent(Collective collective, int64_t elements, int64_t part, const GroupPosition& at) {
  if (collective == Collective::send) return elements;
  if (at.ranks == 1) return 0;
  switch (collective) {
    case Collective::all_reduce: {
      int64_t own = elements / at.ranks + (at.index < elements % at.ranks ? 1 : 0);
      return elements - own + own * (at.ranks - 1);
    }
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return part * (at.ranks - 1);
    case Collective::broadcast:
    case Collective::shift:
    case Collective::send:
      return elements;
    case Collective::receive:
      return 0;
  }
  return 0;
}

}  // namespace sextant
