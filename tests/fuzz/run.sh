#!/usr/bin/env bash
# run.sh SECONDS: runs every target of fuzz_targets, beside this file, at the same time for that long, on its seeds and on what it
# finds from them. Prints executions and findings of each and exits 1 if there is one. Logs, and the inputs of findings, are in
# work/NAME. A finding is a crash, a report of a sanitizer, more than 20 seconds or 4 GB for one input.
set -uo pipefail
cd "$(dirname "$0")"
seconds=${1:?seconds}
export LD_LIBRARY_PATH=$PWD/lib ASAN_OPTIONS=allocator_may_return_null=1:${ASAN_OPTIONS:-}
rm -rf work
names=$(ls seeds)
for name in $names; do
  mkdir -p "work/$name/corpus" "work/$name/findings"
  SEXTANT_FUZZ_TARGET=$name ./fuzz_targets "work/$name/corpus" "seeds/$name" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=4096 -max_len=65536 -artifact_prefix="work/$name/findings/" -print_final_stats=1 >"work/$name/log" 2>&1 &
done
wait
failed=0
printf '%-16s %12s %10s %9s\n' target executions 'per second' findings
for name in $names; do
  log=work/$name/log
  count=$(find "work/$name/findings" -type f ! -name 'slow-unit-*' | wc -l)
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  printf '%-16s %12s %10s %9s\n' "$name" "${runs:-none}" "${rate:-}" "$count"
  if [ "$count" -gt 0 ] || [ -z "$runs" ] || grep -q 'ERROR:\|runtime error:' "$log"; then
    failed=1
    grep -m1 'ERROR:\|runtime error:\|SUMMARY:' "$log" || tail -n 3 "$log"
  fi
done
exit $failed
