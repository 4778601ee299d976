"""The claims, a file for each subject. Each file is a list CLAIMS. docs/claims.md describes how to add one."""
