#!/usr/bin/env bash
# bench/gpu_session.sh [OUT] [SECONDS]: everything that waits for a GPU, in one call: builds, tests of what has not run on a
# device yet, then the benchmarks of fp8 and of packed documents. Each part has a limit of its own and is left out when
# less than that remains of SECONDS (540), so that what has run is kept. Writes OUT (build/gpu-session): a log for each
# part, the results' JSON, and summary.txt, a line for each part.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
out=${1:-build/gpu-session}
whole=${2:-540}
mkdir -p "$out"
out=$(cd "$out" && pwd)
begin=$SECONDS
: >"$out/summary.txt"

say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }

# part NAME LIMIT COMMAND…
part() {
  local name=$1 limit=$2 left=$((whole - (SECONDS - begin))) start=$SECONDS rc
  shift 2
  if ((left < 20)); then
    say "$(printf '%-28s left out: %s s remain' "$name" "$left")"
    return 1
  fi
  ((limit > left - 5)) && limit=$((left - 5))
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.log" 2>&1
  rc=$?
  local verdict="rc $rc"
  ((rc == 0)) && verdict=passed
  ((rc == 124 || rc == 137)) && verdict="stopped after $limit s"
  say "$(printf '%-28s %-22s %4s s  %s' "$name" "$verdict" "$((SECONDS - start))" "$(grep -E '^\[  (PASSED|FAILED)' "$out/$name.log" | tail -n 1)")"
  return "$rc"
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/gpu.txt"

# The cuDNN that PyTorch brought along, where the system has none.
cudnn=$(python3 -c 'import sys; sys.path.insert(0, "bench"); import gpu_train_peer as p; print(p.torch_cudnn() or "")' 2>/dev/null || true)
[ -n "$cudnn" ] && export LD_LIBRARY_PATH="$cudnn:${LD_LIBRARY_PATH:-}"

part build 300 scripts/build cuda sextant test_cuda || { say "nothing to test"; exit 1; }

tests() {
  local name=$1 limit=$2
  shift 2
  part "$name" "$limit" build/cuda/tests/test_cuda --gtest_filter="$1" --gtest_brief=1
}
tests documents 40 'CudaDocumentBatch.*:CudaDocumentMask.*'
tests fp8 60 'CudaFp8.*:CudaFp8Training.*'
tests fp16 60 'CudaFp16.*'
tests drop_slots 20 'Ops/*drop_slots*'
tests shared_device 60 'OnCuda.RanksThatShareADeviceTrainAsOne'
tests walk 40 '*CudaWalk*'
# Steps that are repeated for rows that found no place on their way to experts: the GPU's losses beside the CPU's.
capacity=(mesh.dp=4 mesh.ep=4 mesh.expert_capacity=1 batch.microbatch=2 train.precision=f32 train.eval_every=0)
part capacity_cuda 40 build/cuda/sextant train configs/tiny-moe.toml device=cuda "${capacity[@]}" --out "$out/runs/capacity-cuda"
part capacity_cpu 40 build/cuda/sextant train configs/tiny-moe.toml device=cpu "${capacity[@]}" --out "$out/runs/capacity-cpu"
say "  repeated steps, losses: $(for side in cuda cpu; do
  grep -o '"loss":[0-9.]*' "$out/runs/capacity-$side/metrics.jsonl" 2>/dev/null | tail -n 1 | sed "s/.*:/$side /"
done | tr '\n' ' ')"
tests ops 60 'Ops/CudaOps.AgreeWithTheCpu/*'

part bench_documents 240 python3 bench/gpu_documents_peer.py --steps 12 --modes compile-varlen --results "$out/documents.json"
part bench_fp8 240 python3 bench/gpu_fp8_peer.py --steps 12 --recipes fp8 --results "$out/fp8.json"
part bench_flex 120 python3 bench/gpu_documents_peer.py --steps 12 --modes compile-flex --models llama-1b --results "$out/flex.json"

echo
cat "$out/summary.txt"
for log in bench_documents bench_flex bench_fp8; do
  [ -e "$out/$log.log" ] && { echo; echo "$log:"; tail -n 20 "$out/$log.log"; }
done
exit 0
