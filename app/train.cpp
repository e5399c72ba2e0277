#include "train/train.h"

#include <filesystem>

#include "app/device.h"
#include "app/processes.h"
#include "app/verbs.h"
#include "base/error.h"
#include "config/load.h"
#include "train/heartbeat.h"
#include "train/world.h"

namespace sextant {

namespace fs = std::filesystem;

void train_verb(const TrainArguments& arguments, Processes& processes) {
  processes.join();
  RunConfig run = load_config(arguments.config, arguments.overrides);
  if (arguments.ranks != 0) require_world(run, arguments.ranks, "--ranks");
  std::string name = run.name.empty() ? fs::path(arguments.config).stem().string() : run.name;
  fs::path out = arguments.out.empty() ? fs::path("runs") / name : fs::path(arguments.out);
  MakeExecutor executors = executors_for(run);
  Launch launch = processes.launch(timeout_of(run), heartbeat_lookout(out));
  TrainResult result = train(run, out, executors, launch);
  if (!launch.leads()) return;
  if (result.validation_loss)
    fmt::print("validation loss {:.4f} nats per token, {:.1f} % of the unigram entropy ({:.4f})\n", *result.validation_loss,
               100 * *result.validation_loss / result.unigram_entropy, result.unigram_entropy);
  fmt::print("model    {}\nmetrics  {}\n", result.checkpoint.string(), (out / "metrics.jsonl").string());
}

}  // namespace sextant
