// The server of `watch` against files, and against clients that mean harm or are slow.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "raw_client.h"
#include "run_files.h"
#include "watch/http_request.h"
#include "watch/run_json.h"
#include "watch/watch_server.h"

namespace sextant {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class RunningServer {
 public:
  RunningServer(const fs::path& directory, Access access, HttpLimits limits = {})
      : runs_({directory}),
        server_(runs_, std::move(access), "127.0.0.1", 0, limits,
                {.poll = std::chrono::milliseconds(20), .rescan = std::chrono::milliseconds(50)}),
        thread_([this] { server_.serve([this] { return stop_.load(); }); }) {}
  ~RunningServer() {
    stop_ = true;
    thread_.join();
  }
  int port() const { return server_.port(); }

 private:
  RunSet runs_;
  WatchServer server_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class WatchServerTest : public testing::Test {
 protected:
  WatchServerTest() : files_("server") {
    files_.write("a/metrics.jsonl", metrics_line(1, 5) + metrics_line(2, 4, ",\"validation_loss\":4.5") +
                                        metrics_line(3, 3, ",\"loads\":[1,2]"));
    files_.write("a/events.jsonl",
                 R"({"time":"2026-11-17T10:00:00.000Z","event":"start","step":1,"text":"<b>begins</b>"})"
                 "\n");
    files_.write("b/metrics.jsonl", metrics_line(1, 6));
    files_.write("secret.txt", "secret");
  }
  void start(Access access = Access::loopback(), HttpLimits limits = {}) {
    server_ = std::make_unique<RunningServer>(files_.path(), std::move(access), limits);
    port_ = server_->port();
  }
  Json json_at(const std::string& target) const {
    RawAnswer answer = get(port_, target);
    EXPECT_EQ(answer.status, 200) << target << answer.body;
    return Json::parse(answer.body);
  }
  // The API once it says what is expected, or its last answer.
  Json wait_for(const std::string& target, const std::function<bool(const Json&)>& expected) const {
    Json json;
    for (int i = 0; i < 500; ++i) {
      json = json_at(target);
      if (expected(json)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return json;
  }
  void wait_until_read() const {
    wait_for("/api/runs", [](const Json& json) {
      return json.at("runs").size() == 2 && json["runs"][0]["rows"] == 3 && json["runs"][1]["rows"] == 1;
    });
  }

  // Of the first run, in place of the one event it has.
  void write_many_events(int count, size_t text_bytes) const {
    std::string lines;
    for (int step = 1; step <= count; ++step)
      lines += fmt::format("{{\"time\":\"2026-11-17T10:00:00.000Z\",\"event\":\"note\",\"step\":{},\"text\":\"{}\"}}\n",
                           step, std::string(text_bytes, 'x'));
    files_.write("a/events.jsonl", lines);
  }

  RunFiles files_;
  std::unique_ptr<RunningServer> server_;
  int port_ = 0;
};

TEST_F(WatchServerTest, AnswersWhatTheFilesSay) {
  start();
  wait_until_read();
  Json runs = json_at("/api/runs");
  EXPECT_EQ(runs["runs"][0]["name"], "a");
  EXPECT_EQ(runs["runs"][0]["step"], 3);
  EXPECT_EQ(runs["runs"][0]["tokens"], 300);
  EXPECT_EQ(runs["runs"][0]["seconds"], 1.5);
  EXPECT_EQ(runs["runs"][0]["last"]["loss"], 3);
  EXPECT_EQ(runs["runs"][0]["last"]["validation_loss"], 4.5);
  EXPECT_EQ(runs["runs"][0]["lists"]["loads"], 2);
  EXPECT_EQ(runs["fields"][1]["name"], "loss");
  Json series = json_at("/api/series?field=loss&runs=1,2,99&x=tokens");
  EXPECT_EQ(series, Json::parse(R"({"series":[{"run":1,"x":[100,200,300],"y":[5,4,3]},{"run":2,"x":[100],"y":[6]}]})"));
  EXPECT_EQ(json_at("/api/series?field=loss&runs=1&smooth=0.5")["series"][0]["smooth"].size(), 3u);
  EXPECT_EQ(json_at("/api/series?field=validation_loss&runs=1")["series"][0]["x"], Json::array({2}));
  EXPECT_EQ(json_at("/api/list?run=1&field=loads"), Json::parse(R"({"width":2,"x":[3],"until":[3],"values":[1,2]})"));
  Json events = json_at("/api/events?runs=1,2");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["text"], "<b>begins</b>");
  EXPECT_EQ(events[0]["tokens"], 100);
  Json compared = json_at("/api/compare?runs=2,1")["comparisons"];
  ASSERT_EQ(compared.size(), 1u);
  EXPECT_EQ(compared[0]["a"]["name"], "b");
  EXPECT_EQ(compared[0]["verdict"], "unknown");  // of so few steps
  EXPECT_EQ(get(port_, "/api/compare?runs=1,99").status, 404);
  EXPECT_EQ(json_at("/api/series?field=loss&runs=1,2&x=flops")["series"].size(), 0u);  // no line has them
  std::string metrics = get(port_, "/metrics").body;
  EXPECT_NE(metrics.find("\nsextant_loss{run=\"a\"} 3\nsextant_loss{run=\"b\"} 6\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("# TYPE sextant_step gauge\nsextant_step{run=\"a\"} 3\n"), std::string::npos);
}

TEST_F(WatchServerTest, AnswersAreJsonWhateverTheNumbersAre) {
  std::string lines;
  for (int step = 1; step <= 3; ++step)
    lines += fmt::format(R"({{"step":{},"loss":1e308,"tokens":{},"step_s":1.7e308}})", step, step) + "\n";
  files_.write("a/metrics.jsonl", lines);
  start();
  wait_until_read();
  for (const char* axis : {"step", "tokens", "seconds"})
    EXPECT_FALSE(
        Json::parse(get(port_, fmt::format("/api/series?field=loss&runs=1&smooth=0.9&x={}", axis)).body, nullptr, false)
            .is_discarded())
        << axis;
  EXPECT_FALSE(json_at("/api/runs").at("runs")[0].at("seconds").is_null());
}

TEST_F(WatchServerTest, FollowsRunsThatGrowComeAndGo) {
  start();
  wait_until_read();
  RawClient stream(port_);
  stream.send("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(stream.receive("retry:").find("text/event-stream"), std::string::npos);
  files_.append("b/metrics.jsonl", metrics_line(2, 5.5) + R"({"step":3,"lo)");
  EXPECT_NE(stream.receive("event: change\ndata: {\"runs\":[2]}\n\n").find("{\"runs\":[2]}"), std::string::npos);
  EXPECT_EQ(json_at("/api/runs")["runs"][1]["rows"], 2);
  files_.append("b/metrics.jsonl", "ss\":5}\n");
  Json grown = wait_for("/api/runs", [](const Json& json) { return json["runs"][1]["rows"] == 3; });
  EXPECT_EQ(grown["runs"][1]["last"]["loss"], 5);
  // As a resumed run writes it: in place of the old file, shorter.
  files_.write("b/new", metrics_line(1, 6) + metrics_line(2, 7));
  fs::rename(files_ / "b/new", files_ / "b/metrics.jsonl");
  Json again = wait_for("/api/runs", [](const Json& json) { return json["runs"][1]["rows"] == 2; });
  EXPECT_EQ(again["runs"][1]["last"]["loss"], 7);
  fs::remove_all(files_ / "a");
  files_.write("deep/er/c/metrics.jsonl", metrics_line(1, 1));
  Json changed = wait_for(
      "/api/runs", [](const Json& json) { return json["runs"].size() == 2 && json["runs"][1]["name"] == "deep/er/c"; });
  EXPECT_EQ(changed["runs"][0]["name"], "b");
  EXPECT_EQ(get(port_, "/api/list?run=1&field=loads").status, 404);
  EXPECT_NE(stream.receive("event: runs").find("event: runs"), std::string::npos);
}

// The colour of a run is its own, whichever others are there.
TEST_F(WatchServerTest, ColoursAreOfTheRuns) {
  RunSet all({files_.path()}), one({files_ / "b"});
  for (RunSet* runs : {&all, &one}) runs->read_all();
  Json of_all = Json::parse(whole_body(runs_json(all, 0)))["runs"],
       of_one = Json::parse(whole_body(runs_json(one, 0)))["runs"];
  ASSERT_EQ(of_all[1]["name"], "b");
  EXPECT_EQ(of_all[1]["colour"], of_one[0]["colour"]);
  EXPECT_NE(of_all[0]["colour"], of_all[1]["colour"]);
}

TEST_F(WatchServerTest, ServesNoFiles) {
  start();
  fs::create_symlink("/etc/passwd", files_ / "a/link");
  for (const char* target : {"/secret.txt", "/../secret.txt", "/a/../secret.txt", "/%2e%2e/secret.txt",
                             "/..%2fsecret.txt", "/a/metrics.jsonl", "/a/link", "//etc/passwd", "/api/../secret.txt",
                             "/api/runs/../../secret.txt", "/api", "/api/runs/", "/%61pi%2fx"}) {
    RawAnswer answer = get(port_, target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body.find("secret\n"), std::string::npos) << target;
  }
  // Fields and runs are looked up among what was read, never as files.
  EXPECT_EQ(get(port_, "/api/series?field=../secret.txt&runs=1").body, "{\"series\":[]}");
  EXPECT_EQ(get(port_, "/api/series?field=loss&runs=../a").status, 400);
  EXPECT_EQ(get(port_, "/api/list?run=1&field=../../secret.txt").status, 404);
}

TEST_F(WatchServerTest, RefusesWrongParameters) {
  start();
  for (const char* query :
       {"field=loss", "runs=1", "field=&runs=1", "field=loss&runs=", "field=loss&runs=x", "field=loss&runs=1&x=hours",
        "field=loss&runs=1&parts=0", "field=loss&runs=1&parts=1e9", "field=loss&runs=1&smooth=1",
        "field=loss&runs=1&from=nan", "field=loss&runs=1&to=1x", "field=loss&runs=99999999999999999999"})
    EXPECT_EQ(get(port_, std::string("/api/series?") + query).status, 400) << query;
}

TEST_F(WatchServerTest, RefusesOtherHostsAndOrigins) {
  start();
  for (const char* headers : {"Host: localhost\r\n", "Host: localhost:9000\r\n", "Host: 127.0.0.1:80\r\n",
                              "Host: [::1]:1\r\n", "Host: localhost:9\r\nOrigin: http://localhost:9\r\n"})
    EXPECT_EQ(get(port_, "/api/runs", headers).status, 200) << headers;
  for (const char* headers :
       {"Host: evil.example\r\n", "Host: localhost.evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n",
        "Host: [::1]x\r\n", "Host: 10.0.0.1\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n", "Host: localhost:1\r\nOrigin: http://localhost:2\r\n"})
    EXPECT_EQ(get(port_, "/api/runs", headers).status, 403) << headers;
  for (const char* site : {"same-origin", "none"})
    EXPECT_EQ(get(port_, "/api/runs", fmt::format("Host: localhost\r\nSec-Fetch-Site: {}\r\n", site)).status, 200)
        << site;
  for (const char* site : {"cross-site", "same-site", "none\r\nSec-Fetch-Site: cross-site"})
    for (const char* path : {"/", "/api/runs", "/api/events?runs=1", "/api/stream", "/metrics"})
      EXPECT_EQ(get(port_, path, fmt::format("Host: localhost\r\nSec-Fetch-Site: {}\r\n", site)).status, 403)
          << path << site;
  // A link to the page that a person follows; what it leads to can read nothing of the page.
  const std::string link = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
  EXPECT_EQ(get(port_, "/", link + "Sec-Fetch-Dest: document\r\n").status, 200);
  EXPECT_EQ(get(port_, "/", link + "Sec-Fetch-Dest: iframe\r\n").status, 403);
  EXPECT_EQ(get(port_, "/api/runs", link + "Sec-Fetch-Dest: document\r\n").status, 403);
  EXPECT_EQ(get(port_, "/api/runs", "").status, 400);
  EXPECT_EQ(get(port_, "/api/runs", "Host: localhost\r\nHost: evil.example\r\n").status, 400);
}

TEST_F(WatchServerTest, AsksForTheTokenOnEveryPath) {
  start(Access::with_token("00112233445566778899aabbccddeeff"));
  const std::string right = "token=00112233445566778899aabbccddeeff", host = "Host: node7:80\r\n";
  for (const char* path : {"/", "/api/runs", "/api/stream", "/metrics", "/nothing"}) {
    EXPECT_EQ(get(port_, path, host).status, 401) << path;
    EXPECT_EQ(get(port_, path + std::string("?token="), host).status, 401) << path;
    EXPECT_EQ(get(port_, path + std::string("?token=00112233445566778899aabbccddeefe"), host).status, 401) << path;
    EXPECT_EQ(get(port_, path + std::string("?token=0011"), host).status, 401) << path;
  }
  EXPECT_EQ(get(port_, "/api/runs?" + right, host).status, 200);
  EXPECT_EQ(get(port_, "/metrics", host + "Authorization: Bearer " + right.substr(6) + "\r\n").status, 200);
  EXPECT_NE(get(port_, "/?" + right, host).body.find(right.substr(6)), std::string::npos);
  EXPECT_EQ(get(port_, "/api/runs?" + right, host + "Origin: http://evil.example\r\n").status, 403);
}

TEST_F(WatchServerTest, RefusesWhatIsNoGet) {
  start();
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "get"}) {
    RawAnswer answer = answer_to(port_, fmt::format("{} /api/runs HTTP/1.1\r\nHost: localhost\r\n\r\n", method));
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_NE(answer.head.find("Allow: GET"), std::string::npos);
  }
  std::string zeros(200, '\0'), many;
  for (int i = 0; i < 300; ++i) many += fmt::format("H{}: x\r\n", i);
  for (const std::string& request :
       {std::string("\r\n\r\n"), std::string("nonsense\r\n\r\n"), zeros + "\r\n\r\n", std::string("GET /\r\n\r\n"),
        std::string("GET / HTTP/2\r\n\r\n"), std::string("GET  / HTTP/1.1\r\n\r\n"),
        std::string("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        std::string("GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("GET /% HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n"), std::string("GET / HTTP/1.1\r\n folded: x\r\n\r\n"),
        "GET / HTTP/1.1\r\nHost: localhost\r\n" + many + "\r\n"})
    EXPECT_EQ(answer_to(port_, request).status, 400) << request.substr(0, 60);
  EXPECT_EQ(answer_to(port_, "GET /" + std::string(40'000, 'a')).status, 431);
  EXPECT_EQ(get(port_, "/api/runs").status, 200);
}

TEST_F(WatchServerTest, PageLetsOnlyItsOwnScriptRun) {
  start();
  RawAnswer one = get(port_, "/"), two = get(port_, "/");
  EXPECT_EQ(one.status, 200);
  size_t nonce = one.head.find("script-src 'nonce-");
  ASSERT_NE(nonce, std::string::npos) << one.head;
  std::string value = one.head.substr(nonce + 18, 32);
  EXPECT_NE(one.body.find("<script nonce=\"" + value + "\">"), std::string::npos);
  EXPECT_EQ(two.head.find(value), std::string::npos);
  EXPECT_NE(one.head.find("default-src 'none'"), std::string::npos);
  for (const char* outside : {"https://", "@import", "url(http", "src="})
    EXPECT_EQ(one.body.find(outside), std::string::npos) << outside;
}

TEST_F(WatchServerTest, ClosesSlowClients) {
  HttpLimits limits;
  limits.head_time = std::chrono::milliseconds(300);
  start(Access::loopback(), limits);
  RawClient silent(port_), slow(port_);
  auto begin = std::chrono::steady_clock::now();
  // A byte now and then does not buy time.
  bool still_open = true;
  for (int i = 0; i < 100 && still_open; ++i) {
    still_open = slow.send("G") && slow.receive("HTTP", std::chrono::milliseconds(50)).empty();
  }
  EXPECT_FALSE(still_open);
  EXPECT_NE(silent.receive().find("408"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_EQ(get(port_, "/api/runs").status, 200);
}

TEST_F(WatchServerTest, DropsReadersThatTakeNothing) {
  write_many_events(2000, 3000);
  HttpLimits limits;
  limits.answer_time = std::chrono::milliseconds(300);
  limits.connections = 4;
  start(Access::loopback(), limits);
  wait_for("/api/runs", [](const Json& json) { return json["runs"].size() == 2 && json["runs"][0]["events"] == 2000; });
  std::vector<std::unique_ptr<RawClient>> readers;
  // An answer larger than the socket's buffers.
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::make_unique<RawClient>(port_));
    readers.back()->send("GET /api/events?runs=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  int status = 0;
  for (int i = 0; i < 200 && status != 200; ++i) {
    status = get(port_, "/api/runs").status;
    if (status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(WatchServerTest, BoundsConnectionsAndRecovers) {
  HttpLimits limits;
  limits.connections = 8;
  start(Access::loopback(), limits);
  {
    std::vector<std::unique_ptr<RawClient>> open;
    for (int i = 0; i < 8; ++i) {
      open.push_back(std::make_unique<RawClient>(port_));
      open.back()->send("GET /api/stream HTTP/1.1\r\n");
    }
    for (int i = 0; i < 50; ++i) EXPECT_EQ(get(port_, "/api/runs").status, 503);
  }
  int status = 0;
  for (int i = 0; i < 200 && status != 200; ++i) {
    status = get(port_, "/api/runs").status;
    if (status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(status, 200);
}

TEST_F(WatchServerTest, StreamsLeaveRoomForRequests) {
  start();
  wait_until_read();
  constexpr int kStreams = 100;  // more than there are connections
  std::vector<std::unique_ptr<RawClient>> open;
  for (int i = 0; i < kStreams; ++i) {
    open.push_back(std::make_unique<RawClient>(port_));
    open.back()->send("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_NE(open.back()->receive("retry:").find("200 OK"), std::string::npos) << i;
    ASSERT_EQ(get(port_, "/api/runs").status, 200) << i;
  }
  // The oldest ones went, the newest are told what changes.
  open.front()->receive("nothing more");
  EXPECT_TRUE(open.front()->closed());
  files_.append("b/metrics.jsonl", metrics_line(2, 5.5));
  EXPECT_NE(open.back()->receive("event: change").find("event: change"), std::string::npos);
}

TEST_F(WatchServerTest, AnswersEachRunOnce) {
  write_many_events(50, 10);
  start();
  wait_until_read();
  wait_for("/api/runs", [](const Json& json) { return json["runs"][0]["events"] == 50; });
  std::string repeated = "1";
  for (int i = 0; i < 5000; ++i) repeated += ",1";
  for (const char* path : {"/api/events?runs=", "/api/series?field=loss&runs=", "/api/compare?runs=2,"})
    EXPECT_EQ(get(port_, path + repeated).body, get(port_, path + std::string("1")).body) << path;
  std::string many;
  for (int id = 1; id <= 101; ++id) many += fmt::format("{}{}", id == 1 ? "" : ",", id);
  EXPECT_EQ(get(port_, "/api/compare?runs=" + many).status, 400);
}

// The last ones, as many as have room; long answers come in chunks, to readers of HTTP/1.0 as they are.
TEST_F(WatchServerTest, BoundsTheEventsOfAnAnswer) {
  constexpr size_t kText = 20'000;
  write_many_events(800, kText);
  start();
  wait_until_read();
  wait_for("/api/runs", [](const Json& json) { return json["runs"][0]["events"] == 800; });
  const std::string request = "GET /api/events?runs=1,2 HTTP/1.", host = "\r\nHost: localhost\r\n\r\n";
  RawAnswer answer = answer_to(port_, request + "1" + host), old = answer_to(port_, request + "0" + host);
  EXPECT_EQ(answer.body, old.body);
  EXPECT_EQ(old.head.find("Transfer-Encoding"), std::string::npos);
  Json events = Json::parse(answer.body);
  // Half of the room is the other run's.
  EXPECT_LE(events.size(), kMostEventBytes / 2 / kText);
  EXPECT_GE(events.size(), kMostEventBytes / 2 / (kText + 200));
  EXPECT_EQ(events.back()["step"], 800);
  // Runs that are not there take no room.
  std::string absent = "/api/events?runs=1,2";
  for (int id = 100; id < 2000; ++id) absent += fmt::format(",{}", id);
  EXPECT_EQ(get(port_, absent).body, answer.body);
}

TEST_F(WatchServerTest, AnswersManyAtOnce) {
  start();
  wait_until_read();
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) good += get(port_, "/api/series?field=loss&runs=1,2").status == 200;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

// One request of a server that answers as `handler` says, on this thread.
RawAnswer answer_of(const HttpServer::Handler& handler, HttpLimits limits = {}) {
  HttpServer server("127.0.0.1", 0, limits, handler);
  std::atomic<bool> answered = false;
  RawAnswer answer;
  std::thread asking([&] {
    answer = get(server.port(), "/");
    answered = true;
  });
  while (!answered) server.turn(std::chrono::milliseconds(20));
  asking.join();
  return answer;
}

TEST(HttpServerTest, MemoryThatEndsIsA503) {
  EXPECT_EQ(answer_of([](const HttpRequest&) -> HttpResponse { throw std::bad_alloc(); }).status, 503);
  auto pieces = [](const HttpRequest&) -> HttpResponse {
    return {.pieces = [](std::string&) -> bool { throw std::bad_alloc(); }};
  };
  EXPECT_EQ(answer_of(pieces).status, 503);
}

TEST(HttpServerTest, AnswersHaveABudget) {
  HttpLimits limits;
  limits.answer.bytes = 1 << 20;
  auto endless = [](size_t piece) {
    return [piece](const HttpRequest&) -> HttpResponse {
      return {.pieces = [piece](std::string& out) {
        out.append(piece, 'x');
        return true;
      }};
    };
  };
  // An answer whose first piece is over the limit is refused; an answer that exceeds it later ends without the last
  // chunk.
  EXPECT_EQ(answer_of(endless(2 << 20), limits).status, 503);
  RawAnswer cut = answer_of(endless(1000), limits);
  EXPECT_EQ(cut.status, 200);
  EXPECT_TRUE(cut.body.ends_with("(cut off)"));
  EXPECT_LE(cut.body.size(), (1 << 20) + 100);
}

TEST(HttpRequestParser, DecodesPathAndQuery) {
  auto parsed = parse_request("GET /a%20b?x=1&name=a%26b&empty=&flag HTTP/1.1\r\nHost:  h \r\nX-Y:z\r\n\r\n");
  ASSERT_TRUE(std::holds_alternative<HttpRequest>(parsed));
  const auto& request = std::get<HttpRequest>(parsed);
  EXPECT_EQ(request.path, "/a b");
  EXPECT_EQ(*request.parameter("name"), "a&b");
  EXPECT_EQ(*request.parameter("empty"), "");
  EXPECT_EQ(*request.parameter("flag"), "");
  EXPECT_EQ(request.parameter("none"), nullptr);
  EXPECT_EQ(*request.header("host"), "h");
  EXPECT_EQ(*request.header("x-y"), "z");
}

TEST(AccessToken, IsRandomAndComparedWhole) {
  std::string one = random_token(), two = random_token();
  EXPECT_EQ(one.size(), 32u);
  EXPECT_NE(one, two);
  EXPECT_TRUE(equal_in_constant_time(one, one));
  EXPECT_FALSE(equal_in_constant_time(one, two));
  EXPECT_FALSE(equal_in_constant_time("", one));
  EXPECT_FALSE(equal_in_constant_time(one + one, one));
}

}  // namespace
}  // namespace sextant
