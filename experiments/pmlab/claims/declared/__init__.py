"""The claims, a file for each subject. A file here is a list CLAIMS; docs/claims.md says how to add one."""
