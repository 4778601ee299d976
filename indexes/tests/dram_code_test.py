"""Flush and fence cost nothing on DRAM: shown from the generated code.

usage: dram_code_test.py OBJDUMP OBJECT-FILE   (compiled from dram_code.cpp, with optimisation)
"""
import re
import sys

from generated_code import functions

COSTS = re.compile(r"\b(clwb|clflush|clflushopt|sfence|mfence|lfence|call|lock|xchg)\b")


def main():
    code = functions(sys.argv[1], sys.argv[2])
    persisted, alone, on_pm = (code[name] for name in
                               ("stores_persisted_on_dram", "stores_alone", "stores_persisted_on_pm"))
    wrong = []
    if persisted != alone:
        wrong.append("persisting on dram makes other code than the stores alone:\n  " + "\n  ".join(persisted) +
                     "\nagainst\n  " + "\n  ".join(alone))
    if costly := [line for line in persisted if COSTS.search(line)]:
        wrong.append("persisting on dram has instructions that cost: " + ", ".join(costly))
    if not any(COSTS.search(line) for line in on_pm):
        wrong.append("the flushes of persistent memory were not seen: this test sees nothing")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"persisting on dram: {len(persisted)} instructions, the same as the stores alone: {'; '.join(persisted)}")


main()
