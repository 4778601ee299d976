#!/bin/bash
# Usage: scripts/make_traces.sh [--workload a..f] [--records N] [--operations N] [--out DIR] [--gzip]
#                               [--generator ycsb|go-ycsb] [--value-bytes N] [--help]
#
# Makes traces for `pmlab bench --trace` with the generators that the field uses: DIR/GENERATOR-WORKLOAD.load.txt (the
# inserts) and DIR/GENERATOR-WORKLOAD.run.txt, as the generator prints them. A file that exists is replaced once its
# successor is complete. Prints the command that runs each trace.
#
#   --workload W       core workload of YCSB, may be repeated; default: a
#   --records N        records to load; default: 1000000
#   --operations N     operations to run; default: 1000000
#   --out DIR          where the traces go; default: traces
#   --gzip             compress them: .txt.gz
#   --generator G      ycsb: official YCSB 0.17.0, which needs Java and Maven (the default); go-ycsb: go-ycsb 1.0.1,
#                      which needs Go
#   --value-bytes N    length of the one field of a record; default: 8. pmlab does not read it: longer lines, no more
#
# The generator is fetched once, into $XDG_CACHE_HOME/pmlab or ~/.cache/pmlab. Missing packages for it are installed
# from Debian: with apt-get, as root or through sudo, without questions.
#
# Status: 0 all traces are there; 1 the generator could not be had or failed (named); 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

fail() {
  say "$(basename "$0"): $*"
  exit 1
}

# fail_with LOG MESSAGE: shows the end of the log first.
fail_with() {
  [ ! -s "$1" ] || tail -n 5 "$1" >&2
  fail "$2"
}

check_count() {
  if ! [[ $2 =~ ^[1-9][0-9]{0,9}$ ]] || [ "$2" -gt 2147483647 ]; then
    die "$1 $2: must be a whole number from 1 to 2147483647"
  fi
}

ycsb_version=0.17.0
go_ycsb_version=v1.0.1

workloads=()
records=1000000
operations=1000000
out=traces
generator=ycsb
value_bytes=8
compress=no
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) print_help; exit 0 ;;
    --gzip) compress=yes; shift; continue ;;
    --workload | --records | --operations | --out | --generator | --value-bytes) ;;
    *) die "unknown option $1; see --help" ;;
  esac
  [ $# -gt 1 ] || die "$1 needs a value"
  case $1 in
    --workload)
      [[ $2 =~ ^[a-f]$ ]] || die "--workload $2: must be one letter, a to f"
      workloads+=("$2")
      ;;
    --records) check_count "$1" "$2"; records=$2 ;;
    --operations) check_count "$1" "$2"; operations=$2 ;;
    --value-bytes) check_count "$1" "$2"; value_bytes=$2 ;;
    --out) out=$2 ;;
    --generator)
      [[ $2 =~ ^(ycsb|go-ycsb)$ ]] || die "--generator $2: must be ycsb or go-ycsb"
      generator=$2
      ;;
  esac
  shift 2
done
[ ${#workloads[@]} -gt 0 ] || workloads=(a)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pmlab
mkdir -p "$cache" || fail "cannot make the folder $cache; name another one in XDG_CACHE_HOME"
mkdir -p "$out" || fail "cannot make the folder $out; choose another one with --out"
work=$(mktemp -d "$out/.making.XXXXXX") || fail "cannot write to the folder $out; choose another one with --out"
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd)

# need PROGRAM PACKAGE...: installs the packages if the program is missing.
need() {
  local program=$1 become=()
  shift
  command -v "$program" >/dev/null && return
  [ "$(id -u)" = 0 ] || become=(sudo -n)
  say "$program is missing: installing $*"
  { "${become[@]}" apt-get -q update &&
    "${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"; } \
    >"$work/apt.log" 2>&1 && command -v "$program" >/dev/null ||
    fail_with "$work/apt.log" "no $program: could not install $*; install it by hand and run this again"
}

# Official YCSB: $cache/ycsb-VERSION/*.jar. A folder is complete once it has that name.
get_ycsb() {
  need java default-jre-headless
  jars=$cache/ycsb-$ycsb_version
  [ ! -d "$jars" ] || return 0
  need mvn maven
  say "fetching YCSB $ycsb_version"
  cat >"$work/pom.xml" <<END
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>pmlab</groupId>
  <artifactId>traces</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>site.ycsb</groupId><artifactId>core</artifactId><version>$ycsb_version</version></dependency>
  </dependencies>
</project>
END
  mvn -q -B -f "$work/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$work/jars" >"$work/mvn.log" 2>&1 ||
    fail_with "$work/mvn.log" "could not get site.ycsb:core:$ycsb_version from Maven Central"
  rm -rf "$jars.part"
  cp -r "$work/jars" "$jars.part"
  mv "$jars.part" "$jars"
}

# go-ycsb: the released program, built without its bindings to databases (hundreds of modules) other than `basic`.
get_go_ycsb() {
  program=$cache/go-ycsb-$go_ycsb_version
  [ ! -x "$program" ] || return 0
  need go golang-go
  say "fetching and building go-ycsb $go_ycsb_version"
  local module=github.com/pingcap/go-ycsb
  (
    mkdir "$work/fetch" && cd "$work/fetch" &&
      go mod init fetch && go mod download "$module@$go_ycsb_version" &&
      cp -r --no-preserve=mode "$(go env GOMODCACHE)/$module@$go_ycsb_version" "$work/source" && cd "$work/source" &&
      sed -i "\#\"$module/db/#{\#/basic\"#!d}" cmd/go-ycsb/main.go &&
      go build -o "$work/go-ycsb" ./cmd/go-ycsb
  ) >"$work/go.log" 2>&1 ||
    fail_with "$work/go.log" "could not get $module@$go_ycsb_version from the Go module proxy, or not build it"
  cp "$work/go-ycsb" "$program.part"
  mv "$program.part" "$program"
}

# The proportions of the core workloads.
declare -A core=(
  [a]="readproportion=0.5 updateproportion=0.5 requestdistribution=zipfian"
  [b]="readproportion=0.95 updateproportion=0.05 requestdistribution=zipfian"
  [c]="readproportion=1 updateproportion=0 requestdistribution=zipfian"
  [d]="readproportion=0.95 updateproportion=0 insertproportion=0.05 requestdistribution=latest"
  [e]="readproportion=0 updateproportion=0 scanproportion=0.95 insertproportion=0.05 requestdistribution=zipfian
       maxscanlength=100 scanlengthdistribution=uniform"
  [f]="readproportion=0.5 updateproportion=0 readmodifywriteproportion=0.5 requestdistribution=zipfian"
)

# generate WORKLOAD load|run: prints the trace.
generate() {
  local properties=(recordcount="$records" operationcount="$operations" fieldcount=1 fieldlength="$value_bytes"
    fieldlengthdistribution=constant)
  # shellcheck disable=SC2206 # the words of the table are separate properties
  properties+=(${core[$1]})
  local options=() property
  for property in "${properties[@]}"; do options+=(-p "$property"); done
  if [ "$generator" = ycsb ]; then
    local phase=-t
    [ "$2" = run ] || phase=-load
    java -cp "$jars/*" site.ycsb.Client "$phase" -db site.ycsb.BasicDB -p basicdb.verbose=true \
      -p workload=site.ycsb.workloads.CoreWorkload "${options[@]}" 2>"$work/generator.log"
  else
    "$program" "$2" basic -p workload=core -p verbose=true "${options[@]}" 2>"$work/generator.log"
  fi
}

"get_${generator//-/_}"

for workload in "${workloads[@]}"; do
  traces=()
  for phase in load run; do
    file=$generator-$workload.$phase.txt
    pack=(cat)
    if [ $compress = yes ]; then
      file+=.gz
      pack=(gzip -c)
    fi
    generate "$workload" "$phase" | "${pack[@]}" >"$work/$file" ||
      fail_with "$work/generator.log" "$generator failed in the $phase of workload $workload"
    mv "$work/$file" "$out/$file"
    traces+=(--trace "$out/$file")
  done
  echo "pmlab bench ${traces[*]}"
done
