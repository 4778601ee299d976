"""`pmlab run`: runs experiments, each cell a child process. docs/experiments.md."""
