"""`pmlab compare`: which figures of two results differ by more than chance."""
