#!/bin/bash
# Usage: scripts/test.sh [--quick|--all|--index NAME] [--only STEP]... [--list] [--help]
#
# Builds and tests. Installs missing packages first. About 35 minutes on two cores after a first build of about 50.
#
#   --quick       format, build, ctest
#   --index NAME  builds and runs only the tests of index NAME: about a minute after a change of its headers
#   --all         also the long steps: sanitizers, the second compiler, clang-tidy, Slurm; three quarters of an hour
#                 more
#   --only STEP   only this step (and the build that it needs); may be repeated
#   --list        names the steps
#
# Without --all, the steps long (tests of ctest with the label long), all_headers (each compiles alone, of the tools
# too), asan (address and undefined-behaviour sanitizers), tsan (threads), clang, tidy (clang-tidy), analyze (the same
# with clang's static analyzer), packages (every way to install the headers), compilers (g++-13, g++-14, clang++-16,
# clang++-19) and cluster (shards on a real Slurm) run only when they are named; so do program_package (the Debian
# package of the program, installed in a root folder of its own) and container, also with --all.
#
# A check whose tool is missing is skipped and said so; scripts/setup.sh --with-dev-tools installs the tools, and
# --with-cluster-tools those of step cluster. Logs are in build/test-logs. The last line is "N passed, N failed[, N
# skipped]": the tests of ctest, and each other step as one.
#
# Status: 0 nothing failed; 1 something did; 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

# Tests that a sanitizer runs: those whose code paths it can judge, in minutes. The crash and mutation campaigns walk
# the same code thousands of times and stay with the release build.
sanitized_tests=(test_indexes_{point,scenarios,concurrent}
                 test_{block_files,chunk_store,chunk_allocation,kv_device,kv_allocation,kv_cache,tiered,tiered_allocation,kvs_api})
# Tests of failing allocations have one thread.
thread_sanitized_tests=(test_indexes_concurrent test_{block_files,chunk_store,kv_device,kv_cache,tiered,kvs_api})

logs=$root/build/test-logs
jobs=$(nproc)
passed=0 failed=0 skipped=0

sources() { (cd "$root" && find . -path './build*' -prune -o -name '*.[ch]pp' -print | sort); }

step_build() { build_preset release -j "$jobs"; }

# One more than there are processors: some tests wait for a clock.
step_ctest() { (cd "$root/build/release" && ctest --no-tests=error --output-on-failure -j $((jobs + 1)) -LE '^long$'); }
# Tests that take longer than a change should wait, of what shorter ones test too.
step_long() { (cd "$root/build/release" && ctest --no-tests=error --output-on-failure -j "$jobs" -L '^long$'); }

# The tests that a change of an index breaks first: answers, durability, its own scenarios, and its verification, which
# crashes it.
step_index() {
  local tests=(point durable) own="" test
  for test in "$index" "${index%_pm}"; do
    [ -n "$own" ] || [ ! -e "$root/indexes/tests/${test}_test.cpp" ] || own=$test
  done
  build_preset release -j "$jobs" --target pmlab_simulated_program "${tests[@]/#/test_indexes_}" ${own:+test_indexes_$own}
  {
    for test in "${tests[@]}"; do printf '%s\n' "test_indexes_$test" "--gtest_filter=*/$index.*:*/${index}_on_*"; done
    [ -z "$own" ] || printf '%s\n' "test_indexes_$own" '--gtest_filter=*'
  } | (cd "$root/build/release/indexes/tests" &&
    PATH=.:$PATH xargs --max-procs="$jobs" --max-args=2 --delimiter='\n' env)
  (cd "$root/build/release" && ctest --no-tests=error --output-on-failure -j "$jobs" \
    -R "^verify\\.(strings_)?${index}_is_clean\$")
}

step_headers() { "$scripts/check_layers" --compile public; }
step_all_headers() { "$scripts/check_layers" --compile all; }

# sanitized FOLDER PRESET SANITIZERS TEST...: builds the test programs with the sanitizers and runs them.
sanitized() {
  local folder=$root/build/$1 preset=$2 sanitizers=$3 launcher=() programs=() name
  shift 3
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  (cd "$root" && cmake --preset "$preset" -B "$folder" -DPMLAB_SANITIZE="$sanitizers" -DPMLAB_BUILD_TOOLS=OFF \
    "${launcher[@]}")
  cmake --build "$folder" -j "$jobs" --target "$@"
  # libpmemobj is not instrumented, and its publications are races to ThreadSanitizer.
  [[ $sanitizers != *thread* ]] || export GTEST_FILTER='-*_on_pmem*'
  # A std::mutex ends without a call, so locks of two tests at one address of the stack seem to be one, in two orders:
  # verification searches for deadlocks. A child that is to end with its device open leaks a thread.
  [[ $sanitizers != *thread* ]] || export TSAN_OPTIONS=detect_deadlocks=0:report_thread_leaks=0
  for name in "$@"; do programs+=("$(find "$folder" -type f -name "$name" -perm -u+x | head -1)"); done
  printf '%s\n' "${programs[@]}" | xargs --max-procs="$jobs" --max-args=1 --delimiter='\n' env
}
step_asan() { sanitized asan-ubsan asan address,undefined "${sanitized_tests[@]}"; }
step_tsan() { sanitized tsan tsan thread "${thread_sanitized_tests[@]}"; }

# The commands that compile each source by itself: build/release has many as one. Nothing else is built there.
with_each_source() {
  (cd "$root" && cmake --preset release -B build/sources -DPMLAB_ONE_UNIT=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON &&
    cmake --build build/sources --target pmlab_support_objects_build_info) >&2
}

# Every source with the second compiler, by the commands of the first one's build.
step_clang() {
  need clang++-14
  with_each_source
  "$scripts/each_source" --build "$root/build/sources" --jobs "$jobs" -- \
    clang++-14 -fsyntax-only -Werror -Wno-unknown-warning-option
}

step_format() {
  need clang-format-14
  (cd "$root" && sources | xargs clang-format-14 --dry-run -Werror)
}

step_api() {
  need doxygen
  "$scripts/api.sh"
}

# tidied CHECKS: the sources of the library and of the program: each test takes a minute, and instantiates the same
# headers. So do the indexes in the benchmark, which verification has with fewer media.
tidied() {
  need clang-tidy-14
  with_each_source
  "$scripts/each_source" --build "$root/build/sources" --jobs "$jobs" --tool --without tests \
    --without offered -- clang-tidy-14 --quiet "--checks=$1"
}
# Two thirds of clang-tidy's time are the static analyzer and two checks.
step_tidy() { tidied "-clang-analyzer-*,-performance-unnecessary-value-param,-bugprone-reserved-identifier"; }
step_analyze() { tidied ""; }

# Workers that are killed, on a Slurm of one node that the test starts itself, and Snakemake on it.
step_cluster() {
  local tool
  export PATH=$PATH:/usr/sbin
  for tool in slurmctld slurmd munged snakemake; do need "$tool" --with-cluster-tools; done
  "$(find_python)" -B "$root/tests/cluster/slurm_test.py" "$root/build/release/bin/pmlab" 2>&1
}

# Every way to install the headers and the Python package, from the archive of a release. Shows how each was tried.
step_packages() {
  local status=0
  "$(find_python)" "$root/tests/packages/ways_test.py" || status=$?
  sed -n '/^network: /,$s/^/   /p' "$logs/packages.log" >&3
  return $status
}

step_program_package() { "$(find_python)" "$root/tests/packages/program_package_test.py"; }
step_container() { "$(find_python)" "$root/tests/packages/container_test.py"; }
step_compilers() { "$scripts/compilers.sh"; }

# The quick ones first: what they find is known before an hour has passed.
steps=(format api headers build ctest)
quick_steps=(format build ctest)
slow_steps=(long all_headers asan tsan clang tidy analyze packages compilers cluster)
# Long, and for a release: not part of --all.
release_steps=(program_package container)

# need TOOL [OPTION]: ends a step as skipped when its tool is missing, which that option of setup.sh installs.
need() {
  command -v "$1" >/dev/null || { echo "no $1 here: scripts/setup.sh ${2:---with-dev-tools} installs it"; exit 77; }
}

# Runs one step in a shell of its own, which ends at the first command that fails, and counts how it ended. Leaves that
# in step_status. REQUIRES: not called in a condition, where no shell ends at a command that fails.
run_step() {
  local name=$1 log=$logs/$1.log started=$SECONDS status=0 summary
  say "== $name (log: build/test-logs/$name.log)"
  (set -e; "step_$name") 3>&2 >"$log" 2>&1 &
  wait $! || status=$?
  if [[ " ctest long " == *" $name "* ]] && summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+' "$log"); then
    local bad all
    read -r bad all < <(sed -E 's/.*, ([0-9]+) tests failed out of ([0-9]+).*/\1 \2/' <<<"$summary")
    failed=$((failed + bad)) passed=$((passed + all - bad))
    [ "$status" = 0 ] || [ "$bad" != 0 ] || failed=$((failed + 1))
    [ "$all" != 0 ] || { failed=$((failed + 1)); status=1; }
  elif [ $status = 77 ]; then
    skipped=$((skipped + 1))
  elif [ $status = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  case $status in
    0) say "   passed, $(seconds_since $started)" ;;
    77) say "   skipped: $(tail -1 "$log")" ;;
    *) tail -60 "$log" >&2; say "   FAILED, $(seconds_since $started)" ;;
  esac
  step_status=$status
}

chosen=() index=
while [ $# -gt 0 ]; do
  case $1 in
    --quick) chosen=("${quick_steps[@]}") ;;
    --all) chosen=("${steps[@]}" "${slow_steps[@]}") ;;
    --index)
      [ $# -gt 1 ] || die "--index needs the name of an index"
      grep -q "\"name\": \"$2\"" "$root/indexes/indexes.json" || die "indexes/indexes.json has no index $2"
      index=$2 chosen=(index); shift ;;
    --only)
      [ $# -gt 1 ] || die "--only needs a step: ${steps[*]}"
      [[ " ${steps[*]} ${slow_steps[*]} ${release_steps[*]} " == *" $2 "* ]] ||
        die "there is no step $2; the steps are ${steps[*]}, and by name only ${slow_steps[*]} ${release_steps[*]}"
      chosen+=("$2"); shift ;;
    --list) printf '%s\n' "${steps[@]}" "${slow_steps[@]}" "${release_steps[@]}"; exit 0 ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done
[ ${#chosen[@]} != 0 ] || chosen=("${steps[@]}")
for name in "${chosen[@]}"; do
  # These use the results of the build.
  if [[ " ctest long clang tidy analyze cluster " == *" $name "* ]] && [[ " ${chosen[*]} " != *" build "* ]]; then
    chosen=(build "${chosen[@]}")
  fi
done

mkdir -p "$logs"
ensure_packages
started=$SECONDS
for name in "${chosen[@]}"; do
  run_step "$name"
  if [ $step_status != 0 ] && [ "$name" = build ]; then
    say "nothing else can be tested without the build"
    break
  fi
done
say "== $(seconds_since $started) in all"
closing="$passed passed, $failed failed"
if [ $skipped != 0 ]; then closing+=", $skipped skipped"; fi
echo "$closing"
[ $failed = 0 ]
