"""Turns the JSON results of `pmlab bench` into one self-contained HTML page."""
