#!/usr/bin/env bash
# Checks the model of the delivery protocol with Spin: its properties hold, and every weakened variant fails.
set -uo pipefail
model=$(cd "$(dirname "$0")" && pwd)/delivery.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong=0

# verify holds|fails liveness|safety optimisation variant...
verify() {
  local expected=$1 kind=$2 level=$3 found
  shift 3
  cd "$work" && rm -f ./*
  local compile=(-DNFAIR=5) search=(-a -f)
  if [ "$kind" = safety ]; then
    compile=(-DSAFETY)
    search=(-E)
    set -- -DWORDS "$@"
  fi
  spin -a -DPROMPT "$@" "$model" >spin.txt 2>&1 && gcc "$level" "${compile[@]}" -DVECTORSZ=512 -w -o pan pan.c &&
    timeout 120 ./pan "${search[@]}" -m400000 -w21 >pan.txt 2>&1
  # An incomplete search proves nothing.
  if grep -q 'errors: 0' pan.txt 2>/dev/null && ! grep -q 'Search not completed' pan.txt; then
    found=holds
  elif grep -qE 'acceptance cycle \(|assertion violated' pan.txt 2>/dev/null; then
    found=fails
  else
    found='was not decided'
  fi
  if [ "$found" = "$expected" ]; then
    echo "$kind ${*:-} $found"
  else
    echo "$kind ${*:-}: expected $expected, got: $found"
    tail -5 spin.txt pan.txt 2>/dev/null
    wrong=1
  fi
}

# Faults: a run is lost or arrives twice, a reply is lost, or a node is silent for long. Also a crash, and a client that moves
# to the other node.
verify holds liveness -O1 -DFAULTS=1 -DCRASHES=0 -DMOVES=1
verify holds liveness -O1 -DFAULTS=0 -DCRASHES=1 -DMOVES=1
verify holds liveness -O1 -DFAULTS=1 -DCRASHES=0 -DMOVES=0 -DLOSS
verify holds safety -O1 -DFAULTS=0 -DCRASHES=0 -DMOVES=1
verify holds safety -O1 -DFAULTS=1 -DCRASHES=0 -DMOVES=0
verify fails liveness -O0 -DFAULTS=1 -DCRASHES=0 -DMOVES=0 -DNO_SYNC
verify fails liveness -O0 -DFAULTS=1 -DCRASHES=0 -DMOVES=0 -DLOSS -DNUMBERED
verify fails liveness -O0 -DFAULTS=1 -DCRASHES=0 -DMOVES=0 -DNO_RESTART
verify fails liveness -O0 -DFAULTS=1 -DCRASHES=0 -DMOVES=1 -DNO_ORDER
verify fails liveness -O0 -DFAULTS=0 -DCRASHES=0 -DMOVES=0 -DONE_LOOK
verify fails safety -O0 -DFAULTS=1 -DCRASHES=0 -DMOVES=0 -DNO_MEMORY
verify fails safety -O0 -DFAULTS=0 -DCRASHES=0 -DMOVES=1 -DNO_FENCE
verify fails safety -O0 -DFAULTS=0 -DCRASHES=0 -DMOVES=1 -DNO_END
exit "$wrong"
