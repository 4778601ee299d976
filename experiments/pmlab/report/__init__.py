"""Turns the JSON results of `pmlab bench`, `microbench` and `claims` into one self-contained HTML page."""
