"""What is run, judged and reported: `pmlab run`, `pmlab claims` and `pmlab report`. docs/experiments.md."""
