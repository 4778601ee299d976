"""The claims, a file for each subject. A file here is a list CLAIMS; See docs/claims.md to add one."""
