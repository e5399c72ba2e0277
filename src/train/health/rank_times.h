// Where the time of a rank's step goes. One measurement (step_clock.h) that metrics, drifts and stragglers are told
// from.
#pragma once

namespace sextant {

// Of one step, or means over some, in seconds. Of the thread that computes, where nothing else is said.
struct RankTimes {
  double step = 0;
  double waited = 0;                         // in messages, for other ranks above all
  double input = 0;                          // reading data
  double cpu = 0;                            // on a core
  double processor = 0;                      // on cores, all threads of the process
  double run_delay = 0;                      // ready, but without a core
  double throttled = 0;                      // the process's, by the CPU limit of its cgroup
  double major_faults = 0, blocks_read = 0;  // how many
  double crowding = 0;  // threads of the machine, of all programs, that could run, for each of its cores
  double occupied = 0;  // of this process alone: cores that it used, for each of the machine's

  // Without a core because other programs have them, and not because of a limit.
  double crowded_out() const { return run_delay > throttled ? run_delay - throttled : 0; }
  double own() const { return step - waited; }
  double work() const { return own() > input ? own() - input : 0; }  // neither messages nor input
};

constexpr double RankTimes::*kRankTimes[] = {&RankTimes::step,      &RankTimes::waited,       &RankTimes::input,
                                             &RankTimes::cpu,       &RankTimes::processor,    &RankTimes::run_delay,
                                             &RankTimes::throttled, &RankTimes::major_faults, &RankTimes::blocks_read,
                                             &RankTimes::crowding,  &RankTimes::occupied};

inline RankTimes& operator+=(RankTimes& a, const RankTimes& b) {
  for (double RankTimes::*field : kRankTimes) a.*field += b.*field;
  return a;
}
inline RankTimes& operator-=(RankTimes& a, const RankTimes& b) {
  for (double RankTimes::*field : kRankTimes) a.*field -= b.*field;
  return a;
}
inline RankTimes& operator/=(RankTimes& a, double b) {
  for (double RankTimes::*field : kRankTimes) a.*field /= b;
  return a;
}

}  // namespace sextant
