# Shared by the shell scripts: where things are, how they speak, which Python they run. To be sourced.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scripts=$root/scripts

say() { printf '%s\n' "$*" >&2; }
die() { say "$(basename "$0"): $*"; exit 2; }

# Prints the header comment of the running script: its --help.
print_help() { awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"; }

# The packages of one group ("required" or "dev"), one per line.
packages_of() { awk -v group="$1" '$1 == group { print $2 }' "$scripts/packages.txt"; }

# The purpose of package $1.
purpose_of() { awk -v name="$1" '$2 == name { $1 = $2 = ""; sub(/^ +/, ""); print }' "$scripts/packages.txt"; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The packages of group $1 that are not installed.
missing_packages() {
  local package
  for package in $(packages_of "$1"); do
    is_installed "$package" || printf '%s\n' "$package"
  done
}

# The address of the main Debian archive that apt uses here: the target whose suite is a release itself.
debian_mirror() {
  apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(SUITE) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { print $4; exit }'
}

# Installs missing required packages; quick if there are none. Without dpkg it only prints a message:
# the build then names missing ones.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: install the packages of scripts/packages.txt by the system's own means"
  elif [ -n "$(missing_packages required)" ]; then
    "$scripts/setup.sh"
  fi
}

# A Python with tomllib and matplotlib. Debian's own comes first: its packages are invisible to any other one.
find_python() {
  local candidate
  for candidate in ${PMLAB_PYTHON:-} /usr/bin/python3 python3; do
    if "$candidate" -c 'import tomllib, matplotlib' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python >= 3.11 with matplotlib; run scripts/setup.sh, or name one in PMLAB_PYTHON"
}

seconds_since() { printf '%d s' $((SECONDS - $1)); }

log_file() { mkdir -p "$root/build" && printf '%s/build/%s.log' "$root" "$1"; }

# Configures and builds preset $1, through ccache where it is there. Further arguments go to the build. Progress and the
# time that is left go to file descriptor 3, if that is open.
build_preset() {
  local preset=$1 launcher=()
  shift
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  (cd "$root" && cmake --preset "$preset" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "${launcher[@]}" &&
    if { : >&3; } 2>/dev/null; then
      python3 "$scripts/lib/show_build.py" cmake --build --preset "$preset" "$@" 2>&3
    else
      cmake --build --preset "$preset" "$@"
    fi)
}

find_program_pmlab() {
  local program
  program=$(find "$root/build/release" -type f -name pmlab -perm -u+x | head -1)
  [ -n "$program" ] || die "the build made no program called pmlab"
  printf '%s\n' "$program"
}
