"""`pmlab merge`: joins the results that several machines made. docs/cluster.md."""
