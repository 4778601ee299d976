"""The claims, a file for each subject. A file here is a list CLAIMS. docs/claims.md describes how to add one."""
