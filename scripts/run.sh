#!/bin/bash
# Usage: scripts/run.sh [--quick|--full] [--out DIR] [--help]
#
# The main job: installs what is missing, builds, looks at the machine, runs the suite of benchmarks, writes the report.
#
#   --quick     1 million records, minutes (the default): scripts/suites/quick.toml
#   --full      10 million records, the size that the targets are stated for, under an hour: scripts/suites/full.toml
#   --out DIR   where the results go; default: results/SUITE-DATE-TIME
#
# Pools are made in a fresh folder below /dev/shm, or below PMLAB_POOLS: name the mount point of an fsdax device there
# to run on real persistent memory.
#
# Status: 0 all runs done; 1 a run failed or gave a wrong answer (the report is written all the same); 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

suite=quick
out=
while [ $# -gt 0 ]; do
  case $1 in
    --quick) suite=quick ;;
    --full) suite=full ;;
    --out) [ $# -gt 1 ] || die "--out needs a folder"; out=$2; shift ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
[ -n "$out" ] || out=$root/results/$suite-$(date -u +%Y%m%d-%H%M%S)
if [ -e "$out/raw" ]; then die "$out holds results already; choose another folder"; fi

ensure_packages
python=$(find_python)

say "building (preset release, build/release)"
started=$SECONDS
build_preset release --target pmlab_program >"$(log_file build)" 2>&1 || { tail -40 "$(log_file build)" >&2; die "the build failed"; }
say "  built in $(seconds_since $started)"
pmlab=$(find_program_pmlab)

mkdir -p "$out"
"$pmlab" doctor | tee "$out/doctor.txt" >&2

started=$SECONDS
status=0
"$python" "$scripts/run_suite" "$scripts/suites/$suite.toml" --out "$out" --pmlab "$pmlab" || status=$?
[ $status -le 1 ] || exit $status
say "  ran in $(seconds_since $started)"

PYTHONPATH=$scripts "$python" -m report "$out" --headline
exit $status
