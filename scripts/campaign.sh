#!/bin/bash
# Usage: scripts/campaign.sh [--states N] [--schedules N] [--index NAME[,NAME...]] [--toys] [--seed S] [--help]
#
# Verifies indexes for longer than the tests do: crash states of one thread until there are enough, then schedules of
# four threads, then a hundredth as many with crashes, each of which takes as long as a hundred without. Needs a build
# (scripts/test.sh --only build). Prints a table; every figure is in build/campaign/.
#
#   --states N      crash states of each index; 1000000 if not given
#   --schedules N   schedules of each index; 10000 if not given
#   --index NAMES   these only; otherwise every index that can be verified
#   --toys          instead of indexes the stores of blocks in checker/tests/verify/toys/volumes, without their defects
#   --seed S        of the first round; the following rounds count up; 1 if not given
#
# Status: 0 no violation; 1 a violation, which is printed with the command that shows it again; 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

states=1000000 schedules=10000 seed=1 indexes= subjects=--index
while [ $# -gt 0 ]; do
  case $1 in
    --help) print_help; exit 0 ;;
    --toys) subjects=--subject; shift; continue ;;
    --states | --schedules | --seed | --index) [ $# -gt 1 ] || die "$1 needs a value" ;;
    *) die "unknown option $1; see --help" ;;
  esac
  case $1 in
    --index) indexes=${2//,/ } ;;
    *) [[ $2 =~ ^[0-9]+$ ]] || die "$1 needs a number, not '$2'"
       printf -v "${1#--}" %s "$2" ;;
  esac
  shift 2
done

program=${PMLAB_SIMULATED:-$root/build/release/bin/pmlab-simulated}
[ -x "$program" ] || die "there is no $program; build pmlab first: scripts/test.sh --only build"
if [ "$subjects" = --subject ]; then
  for source in "$root"/checker/tests/verify/toys/volumes/*.cpp; do
    indexes+=" $(dirname "$program")/../checker/tests/verify/toy_$(basename "$source" .cpp).so"
  done
elif [ -z "$indexes" ]; then
  for object in "$(dirname "$program")"/../lib/pmlab/simulated/verify/*.so; do
    indexes+=" $(basename "$object" .so)"
  done
fi

logs=$root/build/campaign
mkdir -p "$logs"
# So long at a time, so that a figure is overshot by little.
seconds_of_part=10

# The number before `$2` in the line of totals $1; 0 if there is none.
figure() { sed -nE "s/.*[ :]([0-9]+) $2.*/\1/p" <<<"$1" | grep . || echo 0; }

# verify_until FIGURE N INDEX FLAG...: rounds until FIGURE ("crash states", "schedules") has grown by N. Adds up the
# work done in total_*. False: a violation.
verify_until() {
  local what=$1 wanted=$2 index=$3 done=0 totals
  shift 3
  while [ "$done" -lt "$wanted" ]; do
    if ! "$program" verify $subjects "$index" --seed "$next_seed" --budget "$seconds_of_part" "$@" >"$logs/part"; then
      cat "$logs/part" >>"$logs/$(basename "$index").log"
      cat "$logs/part"
      return 1
    fi
    cat "$logs/part" >>"$logs/$(basename "$index").log"
    totals=$(head -1 "$logs/part")
    next_seed=$((next_seed + $(figure "$totals" rounds)))
    total_states=$((total_states + $(figure "$totals" "crash states")))
    total_judged=$((total_judged + $(sed -nE 's/.*\(([0-9]+) different.*/\1/p' <<<"$totals" | grep . || echo 0)))
    total_schedules=$((total_schedules + $(figure "$totals" schedules)))
    done=$((done + $(figure "$totals" "$what")))
    [ "$(figure "$totals" rounds)" -gt 0 ] || { say "$index: no round came to an end"; return 1; }
  done
}

table=$logs/table.txt
printf '%-12s %14s %14s %12s %9s  %s\n' index "crash states" "of them judged" schedules seconds verdict >"$table"
status=0
for index in $indexes; do
  : >"$logs/$(basename "$index").log"
  next_seed=$seed total_states=0 total_judged=0 total_schedules=0 verdict=clean
  start=$SECONDS
  if ! { verify_until "crash states" "$states" "$index" --crashes &&
         verify_until schedules "$schedules" "$index" --schedules --threads 4 &&
         verify_until schedules $((schedules / 100)) "$index" --crashes --schedules --threads 4; }; then
    verdict=VIOLATION
    status=1
  fi
  printf '%-12s %14d %14d %12d %9d  %s\n' "$(basename "$index")" "$total_states" "$total_judged" "$total_schedules" \
    $((SECONDS - start)) "$verdict" >>"$table"
done
rm -f "$logs/part"
cat "$table"
exit $status
