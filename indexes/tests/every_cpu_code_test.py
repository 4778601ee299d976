"""One binary for every x86-64, with vectors: shown from the generated code, and from the program's report.

usage: every_cpu_code_test.py OBJDUMP OBJECT-FILE PROGRAM BUILD-FOLDER
(both compiled from every_cpu_code.cpp as a consumer would, with -O2 and no -march)
"""
import pathlib
import re
import subprocess
import sys

from generated_code import functions

# Instructions that not every x86-64 has: of AVX (their names begin with v), of its masks, and single ones of words.
NOT_EVERYWHERE = re.compile(r"^(v[a-z]\w*|k(mov|and|or|unpck|test|ortest|shift)\w*|popcnt|lzcnt|tzcnt|andn|bextr|"
                            r"blsi|blsr|"
                            r"blsmsk|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|pcmpgtq|pcmpeqq|ptest|pshufb|pinsr[bdq]|"
                            r"pextr[bdq]|crc32)$")
SSE2 = re.compile(r"^(pcmpeqd|pcmpeqb|movmskps|pmovmskb)$")
# Functions for one kind of CPU, which simd_of_this_cpu() guards.
GUARDED = re.compile(r"by_avx(2|512)")
# Their tests for it have "rep" before an instruction that older CPUs decode as bsf.
HARMLESS = re.compile(r"^tzcnt$")


def expected_simd():
    flags = set(re.search(r"^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split())
    if {"avx512vl", "avx512dq"} <= flags:
        return "avx512"
    return "avx2" if "avx2" in flags else "sse2"


def main():
    objdump, path, program, build = sys.argv[1:]
    wrong = []
    # The names of the instructions of each function.
    code = {name: {i.split()[0] for i in listed} for name, listed in functions(objdump, path).items()}
    for name, used in code.items():
        bad = sorted(i for i in used if NOT_EVERYWHERE.match(i) and not HARMLESS.match(i))
        if bad and not GUARDED.search(name):
            wrong.append(f"{', '.join(bad)} in code for every CPU: {name}")
    for kind in ("by_avx2", "by_avx512"):
        if not any(kind in name and any(NOT_EVERYWHERE.match(i) for i in used) for name, used in code.items()):
            wrong.append(f"no function {kind} uses its instructions: this test sees nothing")
    if not any(SSE2.match(i) for name, used in code.items() if "cceh" in name for i in used):
        wrong.append("cceh compares words one by one: no vector instruction of SSE2")
    if not any("pmovmskb" in used for name, used in code.items() if "fp_tree" in name):
        wrong.append("fp_tree compares fingerprints one by one: no vector instruction of SSE2")

    reported = subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip()
    if reported != expected_simd():
        wrong.append(f"the program reports {reported}, and this CPU has {expected_simd()}")

    rules = pathlib.Path(build, "build.ninja")
    if rules.exists() and (flags := set(re.findall(r" -m(?:arch|tune|avx|sse|bmi|popcnt)[^\s\"]*", rules.read_text()))):
        wrong.append(f"pmlab is built with{', '.join(sorted(flags))}: not for every x86-64")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(code)} functions, all but those that are chosen by the CPU are for every x86-64; this one: {reported}")


main()
