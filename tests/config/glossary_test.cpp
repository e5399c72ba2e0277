// docs/glossary.md has every config key once, with the names that other programs give it or among those that are ours
// only, and no key that is not there.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "base/files.h"
#include "checkout.h"
#include "config/schema.h"

namespace sextant {
namespace {

TEST(Glossary, EveryKeyStandsOnce) {
  std::string page = read_file(std::string(checkout::kSources) + "/docs/glossary.md");
  // Its first column has names of others.
  size_t others = page.find("\n## Other usual names\n");
  ASSERT_NE(others, std::string::npos);
  page.erase(others, page.find("\n## ", others + 1) - others);
  size_t own = page.find("\n## Ours only\n"), after = page.find("\n## ", own + 1);
  ASSERT_NE(own, std::string::npos);
  ASSERT_NE(after, std::string::npos);
  std::map<std::string, int> named;
  // A row of the tables begins with keys; the list of ours is nothing but keys.
  const std::regex row("(^|\\n)\\| (`[a-z0-9_.]+`(?:, `[a-z0-9_.]+`)*) \\|"), key("`([a-z0-9_.]+)`");
  auto count_keys = [&](const std::string& text) {
    for (std::sregex_iterator at(text.begin(), text.end(), key), end; at != end; ++at) ++named[(*at)[1].str()];
  };
  std::string tables = page.substr(0, own);
  for (std::sregex_iterator at(tables.begin(), tables.end(), row), end; at != end; ++at) count_keys((*at)[2].str());
  count_keys(page.substr(own, after - own));
  for (const Key& known : schema()) {
    EXPECT_EQ(named[std::string(known.name)], 1) << known.name << " in docs/glossary.md";
    named.erase(std::string(known.name));
  }
  for (const auto& [name, times] : named) ADD_FAILURE() << name << " is no key; docs/glossary.md names it";
}

}  // namespace
}  // namespace sextant
