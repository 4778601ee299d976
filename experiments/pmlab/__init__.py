"""Runs experiments, judges claims and writes reports: `pmlab run`, `claims`, `report`. docs/experiments.md."""
