// The verbs of the program, one file each, as plain functions on the options that main.cpp read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "base/verbosity.h"

namespace sextant {

class Processes;

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;                  // empty: runs/NAME
  int64_t ranks = 0;                // how many the mesh must have; 0: any
  int64_t profile = 0;              // the step to time op by op; 0: none
  int64_t until = 0;                // stop behind this step; 0: behind the last
  double minutes = 0;               // how long to train: chooses train.steps; 0: as the config says
  std::vector<std::string> inject;  // faults on purpose
  std::string supervised_by;        // by `sextant run`, which holds the directory
  bool finds_lr = false;            // a range test of the learning rate in place of the run
  std::string rates;                // of it: LOW:HIGH[:STEPS]; empty: the defaults
  Verbosity verbosity = Verbosity::usual;
  bool json = false;  // of the result; progress is not printed then
};
ExitCode train_verb(const TrainArguments& arguments, Processes& processes);

struct RunArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;          // empty: runs/NAME
  int64_t mpi = 0;          // ranks under mpirun; 0: threads of one process
  bool slurm_step = false;  // under srun, inside an allocation
  std::string hosts;        // mpirun's hostfile, with spares
  std::vector<std::string> launcher_arguments;
  int64_t retries = 5;
  double backoff = 1, stale = 60, start_limit = 3600, replay_limit = 600;  // seconds
  bool preflight = false;
  double burn = 0;  // seconds
  std::vector<std::string> inject;
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};
ExitCode run_verb(const RunArguments& arguments);

struct SweepArguments {
  std::string config;
  std::vector<std::string> overrides;  // with lists of values
  std::string out;                     // empty: runs/NAME-sweep
  int64_t jobs = 1;
  int64_t halving = 1;  // of the runs, one in so many goes on; 1: all
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};
ExitCode sweep_verb(const SweepArguments& arguments);

struct GenerateArguments {
  std::string directory;
  std::string prompt;
  double temperature = 0.8;
  int64_t top_k = 0;
  double top_p = 1.0;
  int64_t max_tokens = 256;
  uint64_t seed = 1;
  int64_t samples = 1;
  int64_t context = 0;
  int64_t threads = 0;
  std::vector<std::string> stop;
  int64_t check_stories = 0;  // sentences to write and check against the stories' grammar
  std::string device = "auto";
  Verbosity verbosity = Verbosity::usual;
  bool json = false;
};
void generate_verb(const GenerateArguments& arguments);

struct PlanArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
  std::string machine;            // a name of machines/ or a file; empty: none, and no times
  std::string profile;            // whose software; empty: ours
  std::string report;             // an HTML file to write
  std::vector<std::string> vary;  // for the page of a plan: "batch.seq=4096,8192"
  int64_t layouts = -1;           // for it, of a search; -1: not given
  std::string trace;              // the simulated step, for Perfetto
  std::string timeline;           // SVG files to draw into
  std::string memory_timeline;
  std::string mesh;
  bool hold_out = false;  // with validate
  bool memory = false;    // with hold_out: of memory in place of step times
  bool search = false;
  std::vector<std::string> only;  // for the search: "zero=0,1"
  std::string headroom;           // for the search: "5%"; empty: by what is known of the software's memory
  int64_t devices = 0;            // for the search; 0: as many as the config's mesh has
  std::string validate;           // a CSV file of published runs
  bool calibrate = false;
  std::string published;  // how names of configs of configs/published begin, or all
  std::string write;      // a TOML file for the config with the layout that was found best; of hold_out a CSV file
  std::string compute, tokens, params, inference_tokens,
      fit;  // scaling laws; with a config, `tokens` is the run's budget
  double straggler = 1, jitter = 0;
  std::string imbalance;            // of tokens among the ranks of experts; empty: balanced
  bool serve = false;               // what generating text takes, in place of training
  int64_t prompt = 0, context = 0;  // 0: not given
  Verbosity verbosity = Verbosity::usual;
  std::vector<std::string> given;  // names of the options on the command line
  std::string command;             // all of it, as text
};
ExitCode plan_verb(const PlanArguments& arguments);
void validate_verb(const PlanArguments& arguments);

struct ExplainArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string after;         // empty: the list of passes and what each did; with a filter, the last pass
  int64_t layer = -1;        // only ops of this layer; -1: all
  std::string op;            // only ops of this name; empty: all
  std::string timeline;      // an SVG file to draw the pipeline schedule into
  std::string schedule_csv;  // a file to write it to as text
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void explain_verb(const ExplainArguments& arguments);

struct ListArguments {
  std::string what;  // one of list_names()
  bool json = false;
};
void list_verb(const ListArguments& arguments);

struct DoctorArguments {
  std::string directory = ".";  // where runs will write
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  double burn = 0;  // seconds
  uint64_t seed = 1;
  std::string device = "auto";
};
ExitCode doctor_verb(const DoctorArguments& arguments, Processes& processes);

struct WatchArguments {
  std::vector<std::string> directories;
  std::string host;       // empty: this machine alone
  int64_t port = 6789;    // 0: any that is free
  double stop_after = 0;  // seconds; 0: when it is interrupted
  bool text = false;
  std::vector<std::string> fields;  // empty: those that fit the mode
  std::string x = "step";
  int64_t width = 0;        // characters; 0: the terminal's
  std::string export_page;  // an HTML file to write
  std::string csv;          // a file to write
  std::string tensorboard;  // a folder to write event files to
  std::string forward;      // a service to hand runs on to
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::vector<std::string> given;  // names of the options on the command line
};
void watch_verb(const WatchArguments& arguments);

struct LogArguments {
  std::string directory;
  std::string note;  // a line to add; empty: none
  std::string html;  // a file to write
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void log_verb(const LogArguments& arguments);

struct CompareArguments {
  std::vector<std::string> directories;
  int64_t window = 0;  // steps; 0: by the length of the runs
  bool json = false;
};
void compare_verb(const CompareArguments& arguments);

struct BenchCommArguments {
  std::string config;  // whose mesh gives the groups; empty: all ranks
  std::vector<std::string> overrides;
  int64_t ranks = 0;  // threads, where neither a config nor a launcher says how many; 0: two
  int64_t smallest = 1 << 10, largest = 1 << 24, step = 4;  // bytes
  int64_t calls = 20;
  std::vector<std::string> ops;  // empty: all
  std::string device = "auto";   // cpu: messages between processors; cuda: NCCL
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::string save;  // a machine's file to write the figures into
};
void bench_comm_verb(const BenchCommArguments& arguments, Processes& processes);

struct BenchStorageArguments {
  std::string directory;
  double gigabytes = 1;
  double interval_minutes = 30;
  int64_t ranks = 0;  // threads, where no launcher says how many; 0: one
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
  std::string save;  // a machine's file to write the figures into
};
void bench_storage_verb(const BenchStorageArguments& arguments, Processes& processes);

struct TokenizeArguments {
  std::vector<std::string> inputs;
  std::string tokenizer;
  std::string output;
  std::string format = "flat";  // or megatron
  std::string text_key = "text";
  std::string on_error = "stop";  // or skip
  int64_t end_of_text = -1;       // -1 = the tokenizer's
  int64_t threads = 0;
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void tokenize_verb(const TokenizeArguments& arguments);

struct TrainTokenizerArguments {
  std::vector<std::string> inputs;
  std::string output = "tokenizer.json";
  int64_t vocab = 4096;
  std::string pattern = "gpt2";  // or llama3
  std::string text_key = "text";
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void train_tokenizer_verb(const TrainTokenizerArguments& arguments);

struct InspectArguments {
  std::string path;
  std::string tokenizer;  // to show the first tokens as text
  std::string text_key = "text";
  bool json = false;
};
void inspect_verb(const InspectArguments& arguments);

struct TraceArguments {
  std::string run;  // its --out directory
  int64_t step = 0;
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void trace_verb(const TraceArguments& arguments);

struct ReplayArguments {
  std::string run;  // its --out directory
  std::vector<std::string> overrides;
  int64_t step = 0;
  std::string precision;  // "f64", or empty: that of the config
  bool ops = false, bisect = false, documents = false;
  std::vector<std::string> against;  // overrides of a second execution to compare with
  double tolerance = 0;              // 0: by precision
  std::vector<std::string> inject;   // faults on purpose
  bool json = false;
  Verbosity verbosity = Verbosity::usual;
};
void replay_verb(const ReplayArguments& arguments);

struct OrderArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t samples = 0;
  bool json = false;  // which it always is
  Verbosity verbosity = Verbosity::usual;
};
void order_verb(const OrderArguments& arguments);

}  // namespace sextant
