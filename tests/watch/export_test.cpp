// Files for other programs: event files of TensorBoard byte by byte, tables.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <sstream>
#include <vector>

#include "base/files.h"
#include "run_files.h"
#include "watch/csv_export.h"
#include "watch/prometheus.h"
#include "watch/tensorboard.h"

namespace sextant {
namespace {

TEST(Tensorboard, ChecksumsAreThoseOfThePublishedExamples) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Tensorboard, EventsAreMessagesOfProtobuf) {
  // 09 double, 10 step, 2a summary { 0a value { 0a tag, 15 float } }
  std::string event = tensorboard_event(1.5, 300, {{"loss", 2.0F}});
  std::string wanted("\x09\0\0\0\0\0\0\xf8\x3f\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x40", 27);
  EXPECT_EQ(event, wanted);
}

// Lengths and checksums of all records hold; how many there are.
size_t count_records(std::string_view file) {
  size_t count = 0;
  auto masked = [](std::string_view bytes) {
    uint32_t crc = crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  auto number = [](std::string_view bytes) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data(), 4);
    return value;
  };
  for (; !file.empty(); ++count) {
    uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    EXPECT_EQ(number(file.substr(8)), masked(file.substr(0, 8)));
    EXPECT_EQ(number(file.substr(12 + length)), masked(file.substr(12, length)));
    file.remove_prefix(16 + length);
  }
  return count;
}

TEST(Tensorboard, FilesHaveARecordForEachStep) {
  RunFiles files("tensorboard");
  files.write("runs/a/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4, ",\"validation_loss\":3"));
  files.write("runs/group/b/metrics.jsonl", metrics_line(1, 5));
  RunSet runs({files / "runs"});
  runs.read_all();
  EXPECT_EQ(write_tensorboard(runs, files / "out"), 2u);
  std::string file = read_file(files / "out/a/events.out.tfevents.0.sextant");
  EXPECT_EQ(count_records(file), 3u);  // the version first
  EXPECT_NE(file.find("brain.Event:2"), file.npos);
  EXPECT_NE(file.find("validation_loss"), file.npos);
  EXPECT_EQ(count_records(read_file(files / "out/group/b/events.out.tfevents.0.sextant")), 2u);
}

TEST(CsvOfRuns, HasARowForEachStepAndQuotesNames) {
  RunFiles files("csv");
  files.write("runs/a,\"x\"/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4, ",\"validation_loss\":3"));
  files.write("runs/b/metrics.jsonl", metrics_line(7, 1.5, ",\"model_flops\":4e15") + metrics_line(8, 1.25));
  RunSet runs({files / "runs"});
  runs.read_all();
  EXPECT_EQ(csv_of_runs(runs, {}),
            "run,step,tokens,seconds,flops,loss,step_s,validation_loss\n"
            "\"a,\"\"x\"\"\",1,100,0.500,,5,0.5,\n"
            "\"a,\"\"x\"\"\",2,200,1.000,,4,0.5,3\n"
            "b,7,700,0.500,4000000000000000,1.5,0.5,\n"
            "b,8,800,1.000,4000000000000000,1.25,0.5,\n");
  EXPECT_EQ(
      csv_of_runs(runs, {"loss"}),
      "run,step,tokens,seconds,flops,loss\n\"a,\"\"x\"\"\",1,100,0.500,,5\n"
      "\"a,\"\"x\"\"\",2,200,1.000,,4\nb,7,700,0.500,4000000000000000,1.5\nb,8,800,1.000,4000000000000000,1.25\n");
}

// Label values as the text format has them: backslash, double quote and line feed escaped, all else as it is. A table
// of names of folders, which are the runs'.
TEST(PrometheusText, EscapesLabelsAndNamesMetrics) {
  RunFiles files("prometheus");
  const std::vector<std::pair<std::string, std::string>> names{{"plain", "plain"},
                                                               {"a\"b", "a\\\"b"},
                                                               {"back\\slash", "back\\\\slash"},
                                                               {"two\nlines", "two\\nlines"},
                                                               {"{comma,=}", "{comma,=}"}};
  for (const auto& [folder, label] : names)
    files.write(folder + "/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4.5, ",\"grad.norm-x\":2.25"));
  RunSet runs({files.path()});
  runs.rescan();
  runs.read_all();
  std::string text = whole_body(prometheus_pieces(runs, 0));
  for (const auto& [folder, label] : names) {
    for (const char* line : {"sextant_loss{{run=\"{}\"}} 4.5\n", "sextant_step{{run=\"{}\"}} 2\n",
                             "sextant_tokens{{run=\"{}\"}} 200\n", "sextant_grad_norm_x{{run=\"{}\"}} 2.25\n"}) {
      std::string sample = "\n" + fmt::format(fmt::runtime(line), label);
      EXPECT_NE(text.find(sample), text.npos) << sample << text;
    }
  }
  // Each metric is described once, before all of its samples.
  for (size_t at = text.find("# TYPE "); at != text.npos; at = text.find("# TYPE ", at + 1)) {
    std::string name = text.substr(at + 7, text.find(' ', at + 7) - at - 7);
    EXPECT_EQ(text.find("# TYPE " + name + " ", at + 1), text.npos) << name;
    EXPECT_EQ(text.substr(text.find('\n', at) + 1, name.size() + 1), name + "{");
  }
}

// The bytes of one name or field must not break the scrape of all others.
TEST(PrometheusText, HasUtf8AndEachSampleOnce) {
  RunFiles files("prometheus-names");
  files.write("x/a\xffz/metrics.jsonl", metrics_line(1, 5, ",\"a.b\":1,\"a-b\":2,\"run_state\":7"));
  files.write("x/same/metrics.jsonl", metrics_line(1, 6));
  files.write("y/same/metrics.jsonl", metrics_line(1, 7));
  RunSet runs({files / "x", files / "y"});
  runs.read_all();
  std::string text = whole_body(prometheus_pieces(runs, 0));
  EXPECT_NE(text.find("sextant_loss{run=\"a\\\\xffz\"} 5\n"), text.npos) << text;
  EXPECT_EQ(text.find('\xff'), text.npos);
  std::set<std::string> seen;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second || line.starts_with('#')) << line;
  EXPECT_EQ(text.find("sextant_run_state{run=\"a\\\\xffz\"} 7"), text.npos);
}

}  // namespace
}  // namespace sextant
