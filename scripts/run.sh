#!/bin/bash
# Usage: scripts/run.sh [--quick|--full|--smoke] [--out DIR] [--resume] [--help]
#
# The main job: installs missing packages, builds, looks at the machine, runs all experiments, judges the claims, writes
# the report. The experiment that README shows comes first, with a page of its own; the page of all takes its place.
#
#   --quick     an hour on two cores (the default)
#   --full      the sizes that the targets are stated for, hours
#   --smoke     seconds: does everything work?
#   --out DIR   where the results go; default: results/SCALE-DATE-TIME
#   --resume    continue in DIR with the missing runs
#
# Pools are made below /dev/shm, or below PMLAB_POOLS: name the mount point of an fsdax device there to run on real
# persistent memory. The experiments: docs/experiments.md.
#
# Status: 0 all cells done; 1 a cell failed or gave a wrong answer (the report is written all the same); 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

scale=quick
out=
resume=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick | --full | --smoke) scale=${1#--} ;;
    --out) [ $# -gt 1 ] || die "--out needs a folder"; out=$2; shift ;;
    --resume) resume=(--resume) ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
if [ ${#resume[@]} != 0 ] && [ -z "$out" ]; then die "--resume needs --out: the folder to continue in"; fi
[ -n "$out" ] || out=$root/results/$scale-$(date -u +%Y%m%d-%H%M%S)
if [ -e "$out/raw" ] && [ ${#resume[@]} = 0 ]; then die "$out holds results already; choose another folder, or --resume"; fi

ensure_packages
PMLAB_PYTHON=$(find_python)
export PMLAB_PYTHON

say "building (preset release, build/release)"
started=$SECONDS
build_preset release --target pmlab_program 3>&2 >"$(log_file build)" 2>&1 || { tail -40 "$(log_file build)" >&2; die "the build failed"; }
say "  built in $(seconds_since $started)"
pmlab=$(find_program_pmlab)
"$pmlab" doctor >&2

started=$SECONDS
if [ ${#resume[@]} = 0 ]; then
  status=0
  "$pmlab" run hybrid --scale "$scale" --out "$out" >&2 || status=$?
  [ $status -le 1 ] || exit $status
  "$pmlab" report "$out" >&2 || true
  say "  a first page after $(seconds_since 0), of HybridIndex; that of all experiments takes its place"
fi

# The cells of the first page are kept: they are not run again.
status=0
"$pmlab" run --scale "$scale" --out "$out" --resume || status=$?
[ $status -le 1 ] || exit $status
say "  ran in $(seconds_since $started)"

"$pmlab" report "$out" --headline
exit $status
