// The command line: reads options, calls a verb, and turns whatever escapes into one message and an exit code
// (base/exit_code.h).
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "answers/plan_grid.h"
#include "app/ask.h"
#include "app/bench.h"
#include "app/documentation_options.h"
#include "app/examples.h"
#include "app/given_options.h"
#include "app/help_formatter.h"
#include "app/launch.h"
#include "app/list.h"
#include "app/new_options.h"
#include "app/option_complaints.h"
#include "app/output.h"
#include "app/output_file.h"
#include "app/page_origin.h"
#include "app/plan_options.h"
#include "app/processes.h"
#include "app/usage_error.h"
#include "app/verbosity_options.h"
#include "app/verbs.h"
#include "app/version.h"
#include "app/watch_options.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/text_style.h"
#include "comm/transport.h"
#include "config/mesh_axes.h"
#include "validate/known_run.h"
#include "validate/published_run.h"

namespace {

using namespace sextant;

constexpr int64_t kMaxSteps = 1'000'000'000'000, kMaxPositions = int64_t{1} << 30;

void add_config(CLI::App& verb, std::string& config, std::vector<std::string>& overrides) {
  verb.add_option("config", config, "the run's TOML file (docs/config.md lists every key)")->required();
  verb.add_option("overrides", overrides, "key=value pairs that take the place of the file's, such as train.steps=50");
}

void add_train(CLI::App& app, TrainArguments& a, Processes& processes, ExitCode& exit_code) {
  CLI::App* verb = app.add_subcommand("train",
                                      "Train a model; run again to resume. Ranks are threads of one process, or under "
                                      "mpirun and srun one process each");
  add_config(*verb, a.config, a.overrides);
  verb->add_option("--out", a.out, "directory for checkpoints and metrics [runs/NAME]");
  verb->add_option("--ranks", a.ranks, "refuse to start unless the mesh has this many ranks")
      ->check(CLI::Range(int64_t{1}, kMaxRanks));
  verb->add_option("--profile", a.profile, "time this step op by op: a table, and a trace for Perfetto")
      ->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb->add_option("--until", a.until, "save and stop behind this step; the same command without it goes on")
      ->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb->add_option("--minutes", a.minutes,
                   "train for about so long: some steps are timed first, train.steps is set by them, and the learning "
                   "rate's schedule fitted to it; a resumed run keeps its steps")
      ->check(CLI::Range(0.01, 1e7));
  verb->add_option("--inject", a.inject, "a fault on purpose, KIND@STEP[:RANK], such as kill@30:1 (may be repeated)")
      ->allow_extra_args(false);
  CLI::Option* find_lr =
      verb->add_option(
              "--find-lr", a.rates,
              "instead of training, raise the learning rate from LOW to HIGH and see which trains: LOW:HIGH[:STEPS] "
              "[1e-6:1:100]; results in OUT/find-lr")
          ->expected(0, 1);
  verb->add_option("--supervised-by", a.supervised_by)->group("");  // what `run` starts; for nobody to write
  for (const char* other : {"--profile", "--until", "--minutes", "--inject"})
    find_lr->excludes(verb->get_option(other));
  CLI::Option* quiet = add_quiet(*verb, a.verbosity, "print the result alone: validation loss, model, metrics");
  CLI::Option* verbose = add_verbose(*verb, a.verbosity, "a line for every step, whatever train.log_every says");
  CLI::Option* json = verb->add_flag("--json", a.json, "print the result alone, as JSON");
  verbose->excludes(quiet)->excludes(json);
  verb->callback([&, find_lr] {
    a.finds_lr = find_lr->count() > 0;
    exit_code = train_verb(a, processes);
  });
}

void add_run(CLI::App& app, RunArguments& a, ExitCode& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "run", "Train and keep at it: start train, watch it, and restart it from the last checkpoint when it fails");
  add_config(*verb, a.config, a.overrides);
  verb->add_option("--out", a.out, "directory for checkpoints, metrics and run.log [runs/NAME]");
  CLI::Option* mpi = verb->add_option("--mpi", a.mpi, "start this many ranks with mpirun [threads of one process]")
                         ->check(CLI::Range(int64_t{1}, kMaxRanks));
  CLI::Option* step = verb->add_flag("--slurm-step", a.slurm_step, "start the ranks with srun, inside an allocation");
  verb->add_option("--hosts", a.hosts, "hostfile for mpirun; hosts beyond those needed are spares")->needs(mpi);
  verb->add_option("--launcher-arg", a.launcher_arguments, "word for mpirun or srun (may be repeated)")
      ->allow_extra_args(false);
  verb->add_option("--retries", a.retries, "give up after more failures than this without a new checkpoint")
      ->check(CLI::Range(int64_t{0}, kMaxSteps))
      ->capture_default_str();
  verb->add_option("--backoff", a.backoff, "seconds before the second restart without progress; doubled from then on")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  verb->add_option("--stale", a.stale, "seconds without a heartbeat of a rank after which the run hangs")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  verb->add_option("--start-limit", a.start_limit, "seconds from a start to the first heartbeat")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  verb->add_option("--replay-limit", a.replay_limit,
                   "seconds for running a step again that was not finite; 0: it is not")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  CLI::Option* preflight = verb->add_flag("--preflight", a.preflight, "run doctor's checks before each start");
  verb->add_option("--burn", a.burn, "seconds for which doctor computes there, to find silent corruption")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(preflight);
  verb->add_option("--inject", a.inject, "a fault on purpose, KIND@STEP[:RANK], once (may be repeated)")
      ->allow_extra_args(false);
  verb->add_flag("--json", a.json, "print the summary alone, as JSON");
  add_quiet(*verb, a.verbosity, "print the summary alone; the output of the run is in run.log");
  mpi->excludes(step);
  verb->callback([&] { exit_code = run_verb(a); });
}

void add_sweep(CLI::App& app, SweepArguments& a, ExitCode& exit_code) {
  CLI::App* verb =
      app.add_subcommand("sweep", "Train every combination of some values and rank the runs; run again to resume");
  verb->add_option("config", a.config, "the runs' TOML file (docs/config.md lists every key)")->required();
  verb->add_option("values", a.overrides, "key=value,value,... of what is varied, and key=value of what is not")
      ->required();
  verb->add_option("--out", a.out, "directory for the runs [runs/NAME-sweep]");
  verb->add_option("--jobs", a.jobs, "runs at a time; each has its share of the cores")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->capture_default_str();
  verb->add_option("--halving", a.halving,
                   "successive halving: only one run in so many goes on, to so many times the steps")
      ->check(CLI::Range(int64_t{2}, int64_t{100}));
  verb->add_flag("--json", a.json, "print the table alone, as JSON");
  add_quiet(*verb, a.verbosity, "print the table alone");
  verb->callback([&] { exit_code = sweep_verb(a); });
}

void add_replay(CLI::App& app, ReplayArguments& a) {
  CLI::App* verb = app.add_subcommand(
      "replay", "Run a step of a run again, from the checkpoint before it: does it give what the run recorded?");
  verb->add_option("run", a.run, "the run's --out directory")->required();
  verb->add_option("overrides", a.overrides,
                   "key=value pairs that say how the step is computed, such as mesh.tp=2 or device=cpu");
  verb->add_option("--step", a.step, "which step, from 1")->required()->check(CLI::Range(int64_t{1}, kMaxSteps));
  verb->add_option("--precision", a.precision, "f64: on the CPU, in place of train.precision")
      ->check(CLI::IsMember({"f64"}));
  verb->add_flag("--ops", a.ops, "statistics of what every op makes");
  verb->add_flag("--bisect", a.bisect, "name the first op whose output is not finite, or differs between executions");
  verb->add_flag("--documents", a.documents, "name the documents of the step with the highest loss");
  CLI::Option* against =
      verb->add_option("--against", a.against,
                       "with --bisect: compare with the step computed otherwise (mesh.tp=2); may be repeated")
          ->allow_extra_args(false)
          ->needs(verb->get_option("--bisect"));
  verb->add_option("--tolerance", a.tolerance,
                   "with --against: the largest relative difference of an output [1e-3; with bf16 or fp8 0.1]")
      ->check(CLI::Range(1e-12, 1.0))
      ->needs(against);
  verb->add_option("--inject", a.inject,
                   "a NaN on purpose, nan_op=OP@STEP[:RANK], in every execution (may be repeated)")
      ->allow_extra_args(false);
  verb->add_flag("--json", a.json, "print JSON");
  add_quiet(*verb, a.verbosity, "no remarks on standard error when data is read");
  verb->callback([&a] { replay_verb(a); });
}

void add_launch(CLI::App& app, LaunchArguments& a) {
  CLI::App* verb =
      app.add_subcommand("launch", "Print the script that starts a run on many machines; nothing is started");
  add_config(*verb, a.config, a.overrides);
  add_launch_options(*verb, a);
}

void add_generate(CLI::App& app, GenerateArguments& a) {
  CLI::App* verb = app.add_subcommand("generate", "Write text with a trained model or any Hugging Face directory");
  verb->add_option("directory", a.directory, "a run's --out, one of its checkpoints, or a Hugging Face model")
      ->required();
  verb->add_option("--prompt", a.prompt, "text to go on from");
  verb->add_option("--temperature", a.temperature,
                   "0 = always the likeliest token, whatever --top-k, --top-p and --seed say")
      ->capture_default_str();
  verb->add_option("--top-k", a.top_k, "choose among the k likeliest; 0 = all")->capture_default_str();
  verb->add_option("--top-p", a.top_p, "choose among the likeliest that hold this probability")->capture_default_str();
  verb->add_option("--max-tokens", a.max_tokens, "stop after this many")->capture_default_str();
  verb->add_option("--seed", a.seed, "the same seed writes the same text")->capture_default_str();
  CLI::Option* samples = verb->add_option("--samples", a.samples, "how many texts")->capture_default_str();
  verb->add_option("--stop", a.stop, "token that ends the text (may be repeated)");
  verb->add_option("--context", a.context, "positions to keep; 0 = all the model can see")->capture_default_str();
  verb->add_option("--device", a.device, "where to compute; auto: on a GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb->add_option("--threads", a.threads, "of the CPU; 0 = one per core")->capture_default_str();
  verb->add_option("--check-stories", a.check_stories,
                   "write this many sentences and check them against the built-in stories' grammar")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->excludes(samples);
  verb->add_flag("--json", a.json, "print JSON once all is written: texts, and why each ended");
  add_quiet(*verb, a.verbosity, "do not say why the text ended");
  verb->callback([&a] { generate_verb(a); });
}

void add_plan(CLI::App& app, PlanArguments& a, ExitCode& exit_code) {
  CLI::App* verb =
      app.add_subcommand("plan", "Memory, time and cost of a run before it starts; the best layout; scaling laws");
  verb->add_option("config", a.config, "the run's TOML file (docs/config.md lists every key)");
  verb->add_option("overrides", a.overrides, "key=value pairs that take the place of the file's, such as mesh.tp=8");
  verb->add_flag("--json", a.json, "print JSON");
  verb->add_option("--machine", a.machine, "what it runs on: a name of machines/ or a TOML file");
  verb->add_option("--software,--stack", a.profile,
                   "whose software runs it, a name of machines/software.toml [sextant's own]");
  add_quiet(*verb, a.verbosity, "no progress of --search, and no list of files written");
  verb->add_option("--html", a.report, "write the plan, the search or the validation as one HTML file")
      ->check(output_file("--html"));
  verb->add_option("--vary", a.vary,
                   "with --html, of a plan: values to choose from on the page, such as devices=64,128 batch.seq=8192 "
                   "mesh.tp=4,8 (may be repeated) [half and twice the devices, batch.sequences and batch.seq]")
      ->allow_extra_args(false);
  verb->add_option("--layouts", a.layouts,
                   "with --html, of a plan: so many layouts of a search to choose from on the page [those next to "
                   "the config's]")
      ->check(CLI::Range(int64_t{0}, kMostGridLayouts));
  verb->add_option("--trace", a.trace, "write the simulated step for Perfetto")->check(output_file("--trace"));
  verb->add_option("--timeline", a.timeline, "draw the simulated step (SVG)")->check(output_file("--timeline"));
  verb->add_option("--memory-timeline", a.memory_timeline, "draw what the memory holds during the step (SVG)")
      ->check(output_file("--memory-timeline"));
  verb->add_option("--mesh", a.mesh, "draw the mesh: who talks to whom along which axis (SVG)")
      ->check(output_file("--mesh"));
  verb->add_option("--straggler", a.straggler, "every device is this much slower than it should be")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str();
  verb->add_option("--jitter", a.jitter, "spread of op times, as a share")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb->add_option("--imbalance", a.imbalance,
                   "how tokens go to the ranks of experts: balanced, the busiest rank's ratio to the mean, or a run's "
                   "metrics.jsonl");
  verb->add_flag(
      "--search", a.search,
      "find the fastest layouts that fit; with --validate: judge the search by layouts that were measured; with "
      "--published: the fastest layout beside each run's own");
  verb->add_option("--only", a.only,
                   "limits the search, such as zero=0,1 schedule=1f1b tp=4,8; also dp, pp, cp, zero_ranks, chunks, "
                   "microbatch, sequence_parallel, recompute (may be repeated)")
      ->allow_extra_args(false);
  verb->add_option("--devices", a.devices, "with --search: how many it may use [as many as the config's mesh]")
      ->check(CLI::Range(int64_t{1}, kMaxRanks));
  verb->add_option(
      "--headroom", a.headroom,
      "with --search: share of the device's memory that layouts leave free, such as 5% [as much as published "
      "runs with the software took beyond their estimates; docs/planning.md]");
  verb->add_option("--write", a.write,
                   "with --search: write the config with the fastest layout to this TOML file; with --hold-out: the "
                   "errors that intervals are learned from, as CSV")
      ->check(output_file("--write"));
  verb->add_flag("--serve", a.serve, "what serving the model takes: caches, how many sequences, time for each token");
  verb->add_option("--prompt", a.prompt, "with --serve: positions of a prompt [1024, or half the context]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
  verb->add_option("--context", a.context,
                   "with --serve: positions kept for each sequence [4096, or what the model can see]")
      ->check(CLI::Range(int64_t{1}, kMaxPositions));
  CLI::Option* validate =
      verb->add_option("--validate", a.validate,
                       "predict measured runs and compare: those of a CSV file, or without one the published runs that "
                       "come with the program")
          ->expected(0, 1)
          ->default_str(std::string(kPublishedRuns));
  verb->add_flag("--calibrate", a.calibrate, "with --validate: fit the machines' efficiencies and print them")
      ->needs(validate);
  verb->add_flag("--hold-out", a.hold_out, "with --validate: predict each source by a fit on the others")
      ->needs(validate);
  verb->add_flag("--memory", a.memory,
                 "with --hold-out: how far memory of other software is off, in place of step times");
  verb->add_option(
          "--published", a.published,
          "the runs that everybody knows (configs/published), or those whose names begin so: what was measured "
          "beside what we predict")
      ->expected(0, 1)
      ->default_str(std::string(kAllKnownRuns));
  verb->add_option(
      "--tokens", a.tokens,
      "tokens to train on: days and cost, with --search of each layout; without a config, the size they suit");
  verb->add_option("--compute", a.compute,
                   "floating-point operations to spend: the best size and tokens by scaling laws");
  verb->add_option("--params", a.params, "parameters: the tokens and loss that suit them");
  verb->add_option("--inference-tokens", a.inference_tokens, "tokens to be served in the model's life");
  verb->add_option("--fit", a.fit, "fit a scaling law to your own runs (CSV: params, tokens, loss)");
  verb->callback([&a, &exit_code, verb] {
    a.given = given_options(*verb, plan_options());
    exit_code = plan_verb(a);
  });
}

void add_explain(CLI::App& app, ExplainArguments& a) {
  CLI::App* verb = app.add_subcommand("explain", "Show how a config becomes the program that runs");
  add_config(*verb, a.config, a.overrides);
  verb->add_option("--after", a.after, "print the program as it stands after this pass, each op with its values");
  verb->add_option("--layer", a.layer, "only ops of this layer of the model, from 0 [of the program that runs]")
      ->check(CLI::Range(int64_t{0}, kMaxPositions));
  verb->add_option("--op", a.op, "only ops of this name, such as linear [of the program that runs]");
  verb->add_option("--timeline", a.timeline, "draw the pipeline schedule into this SVG file: who computes what when")
      ->check(output_file("--timeline"));
  verb->add_option("--schedule-csv", a.schedule_csv, "write the schedule to this file, for pipeline.file")
      ->check(output_file("--schedule-csv"));
  verb->add_flag("--json", a.json, "print JSON");
  add_quiet(*verb, a.verbosity, "without the line about --after");
  verb->callback([&a] { explain_verb(a); });
}

void add_list(CLI::App& app, ListArguments& a) {
  CLI::App* verb = app.add_subcommand("list", "List what a config or an option may name");
  verb->add_option("what", a.what, list_about())->required()->check(CLI::IsMember(list_names()));
  verb->add_flag("--json", a.json, "print JSON");
  verb->callback([&a] { list_verb(a); });
}

void add_doctor(CLI::App& app, DoctorArguments& a, Processes& processes, ExitCode& exit_code) {
  CLI::App* verb =
      app.add_subcommand("doctor", "Is this machine fit to train, or under mpirun and srun, are these machines?");
  verb->add_option("directory", a.directory, "where runs will write")->capture_default_str();
  verb->add_flag("--json", a.json, "print JSON");
  add_quiet(*verb, a.verbosity, "no progress of --burn on standard error");
  CLI::Option* burn =
      verb->add_option("--burn", a.burn, "compute for this many seconds and compare, to find silent corruption")
          ->check(CLI::Range(0.0, 1e6));
  verb->add_option("--seed", a.seed, "of the data that --burn computes with")->capture_default_str()->needs(burn);
  verb->add_option("--device", a.device, "where to compute")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb->callback([&] { exit_code = doctor_verb(a, processes); });
}

void add_watch(CLI::App& app, WatchArguments& a) {
  CLI::App* verb =
      app.add_subcommand("watch", "Curves and events of runs: a page that is live, a file, or the terminal");
  verb->add_option("directories", a.directories, "runs (train --out), or folders of runs")->required();
  verb->add_option("--port", a.port, "of the page; 0 = any that is free")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  verb->add_option("--host", a.host,
                   "address to listen on, such as 0.0.0.0; the page then needs the token of the address that is "
                   "printed [127.0.0.1, without a token]");
  verb->add_option("--stop-after", a.stop_after, "end after so many seconds [when it is interrupted]")
      ->check(CLI::Range(0.001, 1e9));
  verb->add_flag("--text", a.text, "print the curves and end");
  verb->add_option("--field", a.fields,
                   "of --text and --csv: a field of metrics.jsonl, may be repeated [of --text: loss, validation_loss, "
                   "grad_norm, lr, tokens_per_s; of --csv: all]");
  verb->add_option("--x", a.x,
                   "of --text: what is drawn over; seconds are those spent in steps, flops the sum of model_flops")
      ->check(CLI::IsMember({"step", "tokens", "seconds", "flops"}))
      ->capture_default_str();
  verb->add_option("--width", a.width, "of --text, in characters [the terminal's]")->check(CLI::Range(30, 1000));
  verb->add_option("--html", a.export_page, "write the page to this HTML file, with decimated curves, and end")
      ->check(output_file("--html"));
  verb->add_option("--csv", a.csv, "write all values to this file and end")->check(output_file("--csv"));
  verb->add_option("--tensorboard", a.tensorboard, "write event files of TensorBoard into this folder and end");
  verb->add_option("--forward", a.forward,
                   "follow the runs into this service until they end, by the Python package of that name")
      ->check(CLI::IsMember({"wandb", "mlflow"}));
  verb->add_flag("--json", a.json, "print JSON: the address of the page, the file, or the last values of each run");
  add_quiet(*verb, a.verbosity, "no remarks on standard error");
  verb->callback([&a, verb] {
    a.given = given_options(*verb, watch_options());
    watch_verb(a);
  });
}

void add_log(CLI::App& app, LogArguments& a) {
  auto has_text = [](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); };
  CLI::App* verb = app.add_subcommand("log", "The chronicle of a run as Markdown: its events, and how it stood");
  verb->add_option("directory", a.directory, "the run's --out directory")->required();
  CLI::Option* note = verb->add_option("--note", a.note, "add this line to the run's events.jsonl")->check(has_text);
  CLI::Option* html = verb->add_option("--html", a.html, "write it as a page with curves to this file")
                          ->check(has_text)
                          ->check(output_file("--html"));
  note->excludes(html);
  verb->add_flag("--json", a.json, "print JSON");
  add_quiet(*verb, a.verbosity, "with --note or --html: print nothing");
  verb->callback([&a] { log_verb(a); });
}

void add_run_comparison(CLI::App& app, CompareArguments& a) {
  CLI::App* verb = app.add_subcommand(
      "compare", "Is a run better than another? Configs, losses at equal tokens with their noise, time to a loss");
  verb->add_option("directories", a.directories, "runs (train --out); all others are compared with the first")
      ->required()
      ->expected(2, 100);
  verb->add_option("--window", a.window,
                   "steps that a loss is the mean of [a twentieth of the shorter run, 20 to 1000, no more than half]")
      ->check(CLI::Range(8, 1'000'000));
  verb->add_flag("--json", a.json, "print JSON");
  verb->callback([&a] { compare_verb(a); });
}

void add_bench_comm(CLI::App& bench, BenchCommArguments& a, Processes& processes) {
  CLI::App* verb = bench.add_subcommand(
      "comm", "Collectives and messages between ranks: threads, or processes under mpirun and srun");
  CLI::Option* config = verb->add_option("--config", a.config, "measure the groups of this config's mesh");
  verb->add_option("--set", a.overrides, "key=value of the config, may be repeated")->needs(config);
  verb->add_option("--ranks", a.ranks, "threads, without a config or launcher [2]")
      ->check(CLI::Range(2, 1024))
      ->excludes(config);
  verb->add_option("--min", a.smallest, "bytes of the smallest")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  verb->add_option("--max", a.largest, "bytes of the largest")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  verb->add_option("--step", a.step, "each size is so many times the one before")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  verb->add_option("--calls", a.calls, "of each, timed")->check(CLI::Range(1, 100000))->capture_default_str();
  verb->add_option(
      "--op", a.ops,
      "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast or send_receive, may be repeated [all]");
  verb->add_option("--device", a.device, "cpu: messages between processors, cuda: NCCL")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  verb->add_flag("--json", a.json, "print JSON, for bench compare");
  add_quiet(*verb, a.verbosity, "no progress on standard error");
  verb->add_option("--save", a.save,
                   "write links and message times into this machine's file (NAME.toml), for plan --machine");
  verb->callback([&] { bench_comm_verb(a, processes); });
}

void add_bench_storage(CLI::App& bench, BenchStorageArguments& a, Processes& processes) {
  CLI::App* verb = bench.add_subcommand(
      "storage", "What training does to a file system: checkpoints, tokens at random, small files");
  verb->add_option("directory", a.directory, "on the storage to be measured")->required();
  verb->add_option("--gb", a.gigabytes, "of the checkpoint, all ranks together")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb->add_option("--interval", a.interval_minutes, "minutes between checkpoints")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  verb->add_option("--ranks", a.ranks, "threads, without a launcher [1]")->check(CLI::Range(1, 1024));
  verb->add_flag("--json", a.json, "print JSON, for bench compare");
  add_quiet(*verb, a.verbosity, "no progress on standard error");
  verb->add_option("--save", a.save,
                   "write the speed of checkpoints into this machine's file (NAME.toml), for plan --machine");
  verb->callback([&] { bench_storage_verb(a, processes); });
}

struct DataArguments {
  TokenizeArguments tokenize;
  TrainTokenizerArguments train_tokenizer;
  InspectArguments inspect;
  TraceArguments trace;
  OrderArguments order;
};

void add_data(CLI::App& app, DataArguments& a) {
  CLI::App* data = app.add_subcommand("data", "Tokenize text, train a tokenizer, look into data files");
  data->require_subcommand(1);

  CLI::App* tokenize = data->add_subcommand("tokenize", "Text, JSON, CSV, Parquet or Arrow files to a token file");
  tokenize->add_option("inputs", a.tokenize.inputs, "files or folders")->required();
  tokenize->add_option("--tokenizer", a.tokenize.tokenizer, "tokenizer.json")->required();
  tokenize->add_option("--out", a.tokenize.output, "file to write, such as train.bin")
      ->required()
      ->check(output_file("--out"));
  tokenize
      ->add_option("--format", a.tokenize.format,
                   "flat or megatron; flat has a header (llm.c's) where u16 cannot hold the ids")
      ->check(CLI::IsMember({"flat", "megatron"}))
      ->capture_default_str();
  tokenize->add_option("--text-key", a.tokenize.text_key, "the JSON key or column of the text")->capture_default_str();
  tokenize
      ->add_option("--on-error", a.tokenize.on_error, "at a document that cannot be read: stop, or skip and count it")
      ->check(CLI::IsMember({"stop", "skip"}))
      ->capture_default_str();
  tokenize->add_option("--end-of-text", a.tokenize.end_of_text,
                       "id to write behind each document instead of the tokenizer's end token");
  tokenize->add_option("--threads", a.tokenize.threads, "0 = one per core")->capture_default_str();
  tokenize->add_flag("--json", a.tokenize.json, "print JSON: documents, tokens, bytes of text, what was skipped");
  add_quiet(*tokenize, a.tokenize.verbosity, "print nothing: the file is the result");
  tokenize->callback([&a] { tokenize_verb(a.tokenize); });

  CLI::App* train = data->add_subcommand("train-tokenizer", "Train a byte-level BPE tokenizer from text");
  train->add_option("inputs", a.train_tokenizer.inputs, "files or folders, or \"stories\"")->required();
  train->add_option("--out", a.train_tokenizer.output, "file to write")
      ->capture_default_str()
      ->check(output_file("--out"));
  train->add_option("--vocab", a.train_tokenizer.vocab, "how many tokens")->capture_default_str();
  train->add_option("--pattern", a.train_tokenizer.pattern, "how text is split: gpt2 or llama3")
      ->check(CLI::IsMember({"gpt2", "llama3"}))
      ->capture_default_str();
  train->add_option("--text-key", a.train_tokenizer.text_key, "the JSON key or column of the text")
      ->capture_default_str();
  train->add_flag("--json", a.train_tokenizer.json, "print JSON: the file and how many tokens it has");
  add_quiet(*train, a.train_tokenizer.verbosity, "print nothing: the file is the result");
  train->callback([&a] { train_tokenizer_verb(a.train_tokenizer); });

  CLI::App* inspect =
      data->add_subcommand("inspect", "What a text file, token file, folder of text or token cache holds");
  inspect->add_option("path", a.inspect.path, "file or folder")->required();
  inspect->add_option("--tokenizer", a.inspect.tokenizer, "tokenizer.json, to show the first tokens as text");
  inspect->add_option("--text-key", a.inspect.text_key, "the JSON key or column of the text")->capture_default_str();
  inspect->add_flag("--json", a.inspect.json, "print JSON");
  inspect->callback([&a] { inspect_verb(a.inspect); });

  CLI::App* trace = data->add_subcommand("trace", "Which documents a step of a run used");
  trace->add_option("run", a.trace.run, "the run's --out directory")->required();
  trace->add_option("--step", a.trace.step, "which step, from 1")->required();
  trace->add_flag("--json", a.trace.json, "print JSON");
  add_quiet(*trace, a.trace.verbosity, "no remarks on standard error when data is read");
  trace->callback([&a] { trace_verb(a.trace); });

  CLI::App* order =
      data->add_subcommand("order", "Which samples a run reads, in order, as JSON: [source, sample] pairs");
  order->add_option("config", a.order.config, "config file")->required();
  order->add_option("overrides", a.order.overrides, "key=value");
  order->add_option("--samples", a.order.samples, "how many")->required();
  order->add_flag("--json", a.order.json, "print JSON, as it always does");
  add_quiet(*order, a.order.verbosity, "no remarks on standard error when data is read");
  order->callback([&a] { order_verb(a.order); });
}

template <class Number>
bool fits(const std::string& text) {
  errno = 0;
  if constexpr (std::is_signed_v<Number>)
    std::strtoll(text.c_str(), nullptr, 10);
  else
    std::strtoull(text.c_str(), nullptr, 10);
  return errno != ERANGE;
}

// CLI11 reads what does not fit an integer as the largest one.
void refuse_numbers_too_large(CLI::App& app) {
  auto validator = [](bool (*fits)(const std::string&)) {
    return CLI::Validator(
        [fits](std::string& text) { return fits(text) ? std::string() : fmt::format("{}{}", text, kTooLarge); }, "");
  };
  for (CLI::Option* option : app.get_options()) {
    std::string type = option->get_type_name();
    if (type.starts_with("INT")) option->check(validator(fits<int64_t>));
    if (type.starts_with("UINT")) option->check(validator(fits<uint64_t>));
  }
  for (CLI::App* verb : app.get_subcommands(nullptr)) refuse_numbers_too_large(*verb);
}

// A switch is given or not: --json=0 would read as given.
void refuse_values_of_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_expected_max() == 0) option->disable_flag_override();
  for (CLI::App* verb : app.get_subcommands(nullptr)) refuse_values_of_flags(*verb);
}

ExitCode parse_and_run(int argc, char** argv, Processes& processes) {
  auto start = std::chrono::steady_clock::now();
  CLI::App app("Sextant plans, trains and watches large language models.", "sextant");
  app.require_subcommand(1);
  bool asks_json = false;
  CLI::Option* json = app.add_flag("--json", asks_json, "with --version: print JSON");
  CLI::Option* version =
      app.set_version_flag("--version", [json] { return json->count() > 0 ? version_json() : version_text(); });
  version->description("print the version, the commit and what the program was built with");
  json->needs(version);
  TrainArguments train;
  RunArguments run;
  SweepArguments sweep;
  ReplayArguments replay;
  GenerateArguments generate;
  PlanArguments plan;
  AskArguments ask;
  ExplainArguments explain;
  DataArguments data;
  LaunchArguments launch;
  BenchArguments bench;
  BenchCommArguments bench_comm;
  BenchStorageArguments bench_storage;
  DoctorArguments doctor;
  WatchArguments watch;
  LogArguments log;
  CompareArguments compare;
  ListArguments list;
  NewArguments fresh;
  DocumentationArguments documentation;
  plan.command = ask.what_if.command = command_text(argc, argv);
  ExitCode exit_code = ExitCode::finished;
  add_new(app, fresh);
  add_train(app, train, processes, exit_code);
  add_run(app, run, exit_code);
  add_sweep(app, sweep, exit_code);
  add_replay(app, replay);
  add_generate(app, generate);
  add_data(app, data);
  add_plan(app, plan, exit_code);
  add_ask(app, ask);
  add_explain(app, explain);
  add_launch(app, launch);
  add_bench(app, bench);
  add_bench_comm(*app.get_subcommand("bench"), bench_comm, processes);
  add_bench_storage(*app.get_subcommand("bench"), bench_storage, processes);
  add_watch(app, watch);
  add_log(app, log);
  add_run_comparison(app, compare);
  add_list(app, list);
  add_doctor(app, doctor, processes, exit_code);
  add_documentation(app, documentation);
  add_verbosity_to_all(app);
  add_examples(app);
  refuse_unknown_verb(app, argc, argv);
  refuse_numbers_too_large(app);
  refuse_values_of_flags(app);
  format_help_pages(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) throw usage_error(app, error);
    app.exit(error);  // prints the help or the version
  }
  flush_standard_output();
  if (asks_for_verbose(app) && processes.leads()) {
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    fmt::print(stderr, "{}\n", resources_used(took.count()));
  }
  return exit_code;
}

// On standard error, which may be closed: nothing throws here.
void tell(const std::string& text) {
  std::string name = styled("sextant:", TextStyle::bad, colours_of(STDERR_FILENO));
  std::fflush(stdout);  // in a log of both, what was said before stands before
  std::fputs((name + " " + text + "\n").c_str(), stderr);
}

// The last catch: one message and an exit code for whatever escapes.
ExitCode run_and_report(int argc, char** argv, Processes& processes) {
  try {
    return parse_and_run(argc, argv, processes);
  } catch (const UserError& error) {
    // All processes were given the same; one need say what is wrong with it.
    processes.wait_for_leader_report();
    tell(error.what());
    return error.exit_code();
  } catch (const RunEnded& error) {
    tell(error.what());
    processes.wait_for_failing_rank();
    return error.exit_code();
  } catch (const RunError& error) {
    tell(error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    tell(fmt::format("{}: {}", printable(error.path1().string()), error.code().message()));
    return ExitCode::run_failed;
  } catch (const std::system_error& error) {
    // Where SIGPIPE is ignored, a reader who has seen enough (head -1) makes printing throw: that is no failure to
    // report.
    // Errors of printing begin with this text, which is fmt's.
    bool printing = std::string_view(error.what()).starts_with("cannot write to file");
    if (error.code() != std::errc::broken_pipe)
      tell(printing ? output_error(error.code().message()).what() : printable(error.what(), Newlines::kept));
    return ExitCode::run_failed;
  } catch (const std::bad_alloc&) {
    tell("out of memory");
    return ExitCode::run_failed;
  } catch (const std::exception& error) {
    tell(fmt::format("{}\n  this is a bug in sextant: please report it with the command you ran",
                     printable(error.what(), Newlines::kept)));
    return ExitCode::internal_error;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows past `ulimit -f` is to fail with an error we can report, not with a signal.
  ::signal(SIGXFSZ, SIG_IGN);
  Processes processes;
  ExitCode code = run_and_report(argc, argv, processes);
  processes.leave_with(code);
  return number_of(code);
}
