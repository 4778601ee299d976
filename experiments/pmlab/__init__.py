"""Runs experiments, judges claims and writes reports: `pmlab run`, `merge`, `claims`, `report`. docs/experiments.md."""
