#include "answers/question_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "config/mesh_axes.h"
#include "cost/machine_file.h"
#include "cost/software_profile_file.h"

namespace sextant {

namespace {

constexpr std::string_view kWhatCanChange = "machine=, software=, devices=, network=, price= or a key of the config";

[[noreturn]] void refuse_change(const QuestionChange& change, const std::string& got, const std::string& expected) {
  throw UserError({.place = "--change " + change.text(), .got = got, .expected = expected});
}

std::optional<double> positive(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

// "x2" times what was, or the number itself.
double scaled_or_given(const QuestionChange& change, double before, double unit) {
  bool factor = change.value.starts_with("x");
  std::optional<double> value = positive(std::string_view(change.value).substr(factor ? 1 : 0));
  if (!value)
    refuse_change(change, fmt::format("'{}' is no such amount", change.value), "x2 (a factor) or a number above 0");
  if (factor && before <= 0) refuse_change(change, "the machine's file does not say what it is now", "a number");
  return factor ? before * *value : *value * unit;
}

struct NamedChange {
  std::string_view what;
  void (*apply)(const QuestionChange& change, const ChangeableQuestion& from, ChangedQuestion& to);
};

void change_machine(const QuestionChange& change, const ChangeableQuestion&, ChangedQuestion& to) {
  to.place.machine = load_machine(change.value);
}

void change_software(const QuestionChange& change, const ChangeableQuestion&, ChangedQuestion& to) {
  to.place.profile = profile_named(load_profiles(), change.value);
}

void change_devices(const QuestionChange& change, const ChangeableQuestion& from, ChangedQuestion& to) {
  std::optional<double> value = positive(change.value);
  if (!value || *value != std::floor(*value) || *value > static_cast<double>(kMaxRanks))
    refuse_change(change, fmt::format("'{}' is no number of devices", change.value),
                  fmt::format("an integer from 1 to {}", kMaxRanks));
  to.devices = static_cast<int64_t>(*value);
  // As many sequences as before: what is compared is the same training.
  std::vector<std::string> overrides{fmt::format("batch.sequences={}", to.asked.run.batch.sequences)};
  overrides.insert(overrides.begin(), from.overrides.begin(), from.overrides.end());
  to.asked = asked_run(from.model, overrides, to.devices);
}

void change_network(const QuestionChange& change, const ChangeableQuestion&, ChangedQuestion& to) {
  if (to.place.profile.far_bytes_per_s_per_node)
    refuse_change(change, fmt::format("software {} has a network of its own", to.place.profile.name),
                  "software whose profile says nothing of the network");
  to.place.machine = with_network(std::move(to.place.machine), change.value);
}

void change_price(const QuestionChange& change, const ChangeableQuestion&, ChangedQuestion& to) {
  to.place.machine.price_per_hour = scaled_or_given(change, to.place.machine.price_per_hour, 1);
}

constexpr std::array kNamedChanges{
    NamedChange{"machine", change_machine}, NamedChange{"software", change_software},
    NamedChange{"devices", change_devices}, NamedChange{"network", change_network},
    NamedChange{"price", change_price},
};

// Another length of sequences, for a step of as many tokens; positions beyond what the model has seen are taken to be
// there.
void change_seq(const QuestionChange& change, const ChangeableQuestion& from, ChangedQuestion& to) {
  std::optional<double> value = positive(change.value);
  if (!value || *value != std::floor(*value) || *value > static_cast<double>(kMaxSeq))
    refuse_change(change, fmt::format("'{}' is no length", change.value), "an integer above 0");
  int64_t seq = static_cast<int64_t>(*value), tokens = to.asked.run.batch.sequences * to.asked.run.batch.seq;
  if (tokens % seq != 0)
    refuse_change(change, fmt::format("a step of {} tokens is not a number of such sequences", tokens),
                  fmt::format("a divisor of {}", tokens));
  std::vector<std::string> overrides = from.overrides;
  overrides.push_back(fmt::format("batch.seq={}", seq));
  overrides.push_back(fmt::format("batch.sequences={}", tokens / seq));
  to.remark = fmt::format("{} sequences, for as many tokens a step", tokens / seq);
  if (std::string positions = positions_for(to.asked.spec, seq); !positions.empty()) {
    overrides.push_back(std::move(positions));
    to.remark += fmt::format("; the model's own positions end at {}", to.asked.spec.max_seq);
  }
  to.asked = asked_run(from.model, overrides, to.devices);
}

void change_key(const QuestionChange& change, const ChangeableQuestion& from, ChangedQuestion& to) {
  std::vector<std::string> overrides = from.overrides;
  overrides.push_back(change.text());
  to.asked = asked_run(from.model, overrides, to.devices);
}

}  // namespace

std::vector<QuestionChange> changes_of(const std::vector<std::string>& texts, std::string_view place) {
  std::vector<QuestionChange> changes;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    bool named = equals != std::string::npos && equals > 0 && equals + 1 < text.size();
    std::string what = text.substr(0, equals);
    bool known = what.find('.') != std::string::npos ||
                 std::ranges::any_of(kNamedChanges, [&](const NamedChange& one) { return one.what == what; });
    if (!named || !known)
      throw UserError({.place = fmt::format("{} {}", place, text),
                       .got = named ? fmt::format("'{}' is nothing that can be changed", what) : "no NAME=VALUE",
                       .expected = std::string(kWhatCanChange)});
    for (size_t begin = equals + 1; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      if (end == begin)
        throw UserError({.place = fmt::format("{} {}", place, text),
                         .got = "an empty value",
                         .expected = "values with one comma between them"});
      changes.push_back({what, text.substr(begin, end - begin)});
      begin = end + 1;
    }
    if (text.back() == ',')
      throw UserError({.place = fmt::format("{} {}", place, text),
                       .got = "a comma at the end",
                       .expected = "values with one comma between them"});
  }
  return changes;
}

std::string positions_for(const ModelSpec& spec, int64_t seq) {
  bool lacks = seq > spec.max_seq && why_no_rope(spec.architecture).empty();
  return lacks ? fmt::format("model.max_seq={}", seq) : "";
}

Machine with_network(Machine machine, const std::string& value) {
  QuestionChange change{"network", value};
  if (machine.levels.size() < 2)
    refuse_change(change, fmt::format("{} has no network beyond its node", machine.name),
                  "a machine with two levels or more");
  double devices = static_cast<double>(machine.devices_per_node);
  for (size_t i = 1; i < machine.levels.size(); ++i) {
    Link& link = machine.levels[i].link;
    link.bytes_per_s = scaled_or_given(change, link.bytes_per_s, 1e9 / devices);
  }
  return machine;
}

ChangedQuestion with_change(const ChangeableQuestion& question, const QuestionChange& change) {
  ChangedQuestion out{.asked = asked_run(question.model, question.overrides, question.devices),
                      .place = question.place,
                      .devices = question.devices,
                      .remark = {}};
  auto named = std::ranges::find(kNamedChanges, change.what, &NamedChange::what);
  if (named != kNamedChanges.end())
    named->apply(change, question, out);
  else if (change.what == "batch.seq")
    change_seq(change, question, out);
  else
    change_key(change, question, out);
  return out;
}

}  // namespace sextant
