"""The claims, a file for each subject. Each file has a list CLAIMS. docs/claims.md describes how to add one."""
