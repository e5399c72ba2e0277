#include "ops/transfer.h"

#include <string>

#include "base/error.h"

namespace sextant {
namespace {

constexpr std::string_view kTransfer = "transfer";

}  // namespace

std::optional<Transfer> transfer_of(const Attrs& attrs) {
  if (!attrs.has(kTransfer)) return std::nullopt;
  std::string name = attrs.text_or(kTransfer, "");
  std::optional<Transfer> transfer = transfer_named(name);
  BUG_IF(!transfer, "attr {}: '{}' is not a transfer", kTransfer, name);
  return transfer;
}

void set_transfer(Attrs& attrs, Transfer transfer) {
  attrs.set(kTransfer, std::string(name_of(transfer)));
}

}  // namespace sextant
