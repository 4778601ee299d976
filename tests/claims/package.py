"""Where the Python package is, for its unit tests."""
import os
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "experiments"))
if len(sys.argv) > 1:
    os.environ["PMLAB_PROGRAM"] = os.path.abspath(sys.argv[1])
