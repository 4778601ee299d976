#!/usr/bin/env python3
"""Records for every mutation the round that shows it, so that its test need not search.

    record_replays.py BUILD [DATA]...      BUILD: the folder of the build; DATA: fp_tree, ...; all if none is given

Writes ROOM/tests/mutations/replays/DATA.toml: NAME = "options of pmlab verify". A recorded round that still shows its
mutation stays.
mutation_test.py searches where no round is recorded, or the recorded one no longer shows the mutation: a change of how
rounds are made costs time until the rounds are recorded again, and hides nothing.
"""
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plant  # noqa: E402

SECONDS = 60


def recorded(data):
    """{name: options} of a data file, as lists of words"""
    file = pathlib.Path(data).parent / "replays" / pathlib.Path(data).name
    if not file.exists():
        return {}
    with open(file, "rb") as f:
        return {name: shlex.split(text) for name, text in plant.tomllib.load(f).items()}


def replay_in(output):
    """The options of the command that a violation names, without its subject."""
    words = shlex.split(output.split("to reproduce it:\n", 1)[1].splitlines()[0])[2:]
    at = words.index("--subject")
    return words[:at] + words[at + 2:]


def verify(build, data, number, options):
    environment = dict(os.environ, PMLAB_MUTATION=str(number))
    command = [build / "bin/pmlab-simulated", "verify", "--subject", build / f"checker/tests/verify/{data}_mutated.so",
               "--shrink", "0", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def round_of(build, data, number, mutation, known):
    """(name, options or None)"""
    name = mutation["name"]
    if "waits_for" in mutation:
        return name, None
    if known and verify(build, data, number, known).returncode == 1:
        return name, known
    found = verify(build, data, number, ["--budget", str(SECONDS), *mutation["verify"]])
    if found.returncode != 1:
        print(f"{data}: {name} is not found\n{found.stdout}{found.stderr}", file=sys.stderr)
        return name, None
    options = replay_in(found.stdout)
    if verify(build, data, number, options).returncode != 1:
        print(f"{data}: {name} is not shown again by {shlex.join(options)}", file=sys.stderr)
        return name, None
    return name, options


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    files = plant.data_files()
    unknown = [name for name in sys.argv[2:] if name not in files]
    if unknown:
        sys.exit(f"record_replays.py: there are no mutations of {', '.join(unknown)}; known are: {', '.join(files)}")
    for data in sys.argv[2:] or files:
        file = files[data]
        known = recorded(file)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            rounds = list(pool.map(lambda one: round_of(build, data, *one, known.get(one[1]["name"])),
                                   plant.mutations_in(file)))
        lines = [f'{name} = "{shlex.join(options)}"\n' for name, options in rounds if options]
        kept = sum(1 for name, options in rounds if options and options == known.get(name))
        print(f"{data}: {len(lines)} of {len(rounds)} recorded, {kept} of them as before")
        (file.parent / "replays").mkdir(exist_ok=True)
        (file.parent / "replays" / file.name).write_text(
            "# The rounds that show the mutations: record_replays.py.\n" + "".join(lines))


if __name__ == "__main__":
    main()
