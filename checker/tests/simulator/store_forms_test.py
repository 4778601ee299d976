#!/usr/bin/env python3
"""What the instrument sees of every form of store, flush and fence, with the compilers of this machine.

    store_forms_test.py                                      every compiler that is here, as CI runs it
    store_forms_test.py --compiler g++-13 --optimize O2      judges one compiler: status 1 if it misses what it must not
    store_forms_test.py --table                              the table of docs/instrument.md
    store_forms_test.py --sabotage                           removes parts, each of which must make the test fail
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FORMS = os.path.join(HERE, "store_forms")
INSTRUMENT = os.path.join(ROOT, "checker", "simulator", "instrument")
USUAL = [("g++", "O0"), ("g++", "O2"), ("g++", "O3"), ("clang++-14", "O0"), ("clang++-14", "O2")]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"]
SIMULATED = ["store_forms.cpp", "flush_forms.cpp", "registers.S"]
PLAIN = [os.path.join(FORMS, "check_forms.cpp"), os.path.join(FORMS, "recorder.cpp"),
         os.path.join(INSTRUMENT, "memory_functions.cpp")]


class Failed(Exception):
    pass


def call(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(compiler, optimize, folder, root=ROOT):
    """The program that runs the forms, in `folder`, built with the instrument below `root`."""
    include = ["-std=c++20", f"-I{ROOT}", f"-I{ROOT}/base/include", f"-I{ROOT}/media/include"]
    objects = []
    for source in SIMULATED:
        objects.append(os.path.join(folder, source + ".o"))
        call([os.path.join(root, "scripts", "pmlab-c++"), *include, *WARNINGS, f"-{optimize}", "-fPIE", "-c",
              os.path.join(FORMS, source), "-o", objects[-1]], env={**os.environ, "PMLAB_CXX": compiler})
    by = ["-DFORMS_BY_CLANG"] if "clang" in call([compiler, "--version"]) else []
    program = os.path.join(folder, "check_forms")
    stubs = os.path.join(root, "checker", "simulator", "instrument", "stubs.S")
    call([compiler, *include, *WARNINGS, "-O1", *by, *PLAIN, stubs, *objects, "-latomic", "-o", program])
    return program


def check_library(compiler, folder):
    """One command that compiles and links, from another folder: no runtime of the compiler's own is linked."""
    library = os.path.join(folder, "library.so")
    source = os.path.join(folder, "library.cpp")
    with open(source, "w", encoding="utf-8") as f:
        f.write("template <class T> [[gnu::noinline]] void assign(T* p) { *p = 5; }\n"
                "extern \"C\" void put(long* p) { assign(p); asm volatile(\"clwb %0\" : \"+m\"(*p)); }\n")
    call([os.path.join(ROOT, "scripts", "pmlab-c++"), "-O2", "-shared", "-fPIC", "library.cpp", "-o", "library.so",
          "-Wl,-z,defs", "-pthread"], cwd=folder, env={**os.environ, "PMLAB_CXX": compiler})
    symbols = call(["nm", "-D", "--undefined-only", library])
    needed = call(["objdump", "-p", library])
    for name in ("__tsan_write8", "pmlab_stub_flush"):
        if name not in symbols:
            raise Failed(f"{compiler}: a library made by pmlab-c++ does not call {name}")
    if "assign" in call(["objdump", "-R", library]):
        raise Failed(f"{compiler}: the copy of a template in a program, which is not simulated, would be taken instead")
    if "libtsan" in needed:
        raise Failed(f"{compiler}: a library made by pmlab-c++ needs libtsan")


def run_forms(compiler, optimize, **more):
    """(status, verdicts by form, what was wrong)"""
    with tempfile.TemporaryDirectory(prefix="pmlab-forms-") as folder:
        program = build(compiler, optimize, folder, **more)
        done = subprocess.run([program], capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return done.returncode, {(line[0], line[1]): line[2:] for line in lines if len(line) > 2}, done.stderr


def table_of(results):
    """Lines of Markdown. Runs of one compiler that agree share a column."""
    columns = {}  # verdicts -> [compiler, -O, -O, ...]
    for (compiler, optimize), verdicts in results.items():
        key = (compiler, str([(form, v[0]) for form, v in verdicts.items()]))
        columns.setdefault(key, (verdicts, [compiler]))[1].append("-" + optimize)
    lines = []
    for kind, title in (("store", "store"), ("flush", "flush, fence, operand")):
        lines += [f"| {title} | " + " | ".join(" ".join(name) for _, name in columns.values()) + " |",
                  "| --- |" + " --- |" * len(columns)]
        for form in [f for f in next(iter(results.values())) if f[0] == kind]:
            lines.append(f"| {form[1]} | " + " | ".join(v.get(form, ["?"])[0] for v, _ in columns.values()) + " |")
        lines.append("")
    return lines


def undocumented(table):
    with open(os.path.join(ROOT, "docs", "instrument.md"), encoding="utf-8") as f:
        documented = set(f.read().splitlines())
    return [line for line in table if line not in documented]


def sabotaged(folder, change):
    """A copy of the instrument in `folder`, changed."""
    for part in ("scripts/pmlab-c++", "checker/simulator/instrument"):
        source, target = os.path.join(ROOT, part), os.path.join(folder, part)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
    path, before, after = change
    path = os.path.join(folder, "checker/simulator/instrument", path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if before not in text:
        raise Failed(f"{path} does not hold {before!r}: nothing was sabotaged")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(before, after, 1))
    return folder


# The removed part, its file, and a form that must be missed without it.
SABOTAGE = [
    ("the assembler wrapper", ("flags.txt", "compile  -B@here@/\n", "")),
    ("-fsanitize=thread", ("flags.txt", "compile  -fsanitize=thread\n", "")),
    ("the prelude and -fno-builtin-memset", ("flags.txt", "compile  -include\ncompile  @here@/prelude.h\n", "")),
    ("what was pushed, in operands with %rsp", ("as", 'pushed=24', 'pushed=0')),
    ("the byte 0x66 before clflush", ("as", 'if any(BYTE_66.match', 'if False and any(BYTE_66.match')),
    ("stores of inline asm", ("as", "return self.store_of_asm", "return None and self.store_of_asm")),
    ("what tells the unwinder of a push",
     ("as", r'"\t.cfi_adjust_cfa_offset 8", "\tpushq\t%rsi"', r'"\tpushq\t%rsi"')),
    ("the upper halves of vectors", ("stubs.S", "0xe7", "0x03")),
    ("non-temporal stores", ("as", 'base.startswith(("movnt", "movdiri"))', "False")),
]


def sabotage():
    missed_nothing = []
    for what, change in SABOTAGE:
        with tempfile.TemporaryDirectory(prefix="pmlab-forms-") as folder:
            try:
                status, _, wrong = run_forms("g++", "O2", root=sabotaged(folder, change))
            except Failed as e:
                if "does not hold" in str(e):
                    raise
                status, wrong = 1, "it does not build\n"
        lines = wrong.splitlines()
        shown = f"{len(lines)} forms wrong, the first: {lines[0]}" if lines else f"status {status}"
        print(f"without {what}: {shown}")
        if status == 0:
            missed_nothing.append(what)
    return missed_nothing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler")
    parser.add_argument("--optimize", default="O2")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--sabotage", action="store_true")
    options = parser.parse_args()
    if options.sabotage:
        unnoticed = sabotage()
        for what in unnoticed:
            print(f"FAILED: no test noticed that {what} was left out")
        return 1 if unnoticed else 0

    runs = [(options.compiler, options.optimize)] if options.compiler else [r for r in USUAL if shutil.which(r[0])]
    results, status = {}, 0
    for compiler in dict(runs):
        with tempfile.TemporaryDirectory(prefix="pmlab-forms-") as folder:
            check_library(compiler, folder)
    for compiler, optimize in runs:
        failed, results[compiler, optimize], wrong = run_forms(compiler, optimize)
        if failed:
            status = 1
            print(f"{compiler} -{optimize}: status {failed}\n{wrong}", file=sys.stderr)
    table = table_of(results)
    print("\n".join(table))
    # A CPU that cannot run every form, and other compilers, have another table.
    if not options.table and runs == USUAL and not any("not run" in line for line in table):
        for line in undocumented(table):
            status = 1
            print(f"docs/instrument.md does not have the line: {line}", file=sys.stderr)
    if not options.table:
        print("as it must be" if status == 0 else "FAILED")
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as e:
        sys.exit(f"store_forms_test: {e}")
