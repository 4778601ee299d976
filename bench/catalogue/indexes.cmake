# One line offers an index in `pmlab list`, `bench` and `verify`, native and simulated, and as a library for PiBench.
# docs/adding-an-index.md.
pmlab_index(cceh "extendible hash table with 256-byte windows, instant recovery (FAST'19)")
pmlab_index(dash "extendible hash table, full to 93 % before a split, absent keys in one line, instant recovery (VLDB'20)")
pmlab_index(fast_fair "B+tree with sorted nodes, lock-free reads, instant recovery (FAST'18)")
pmlab_index(wb_tree "B+tree with nodes of one device line, sorted by one word, instant recovery (VLDB'15)")
pmlab_index(level_hashing "hash table of two levels, grows in thousands of small steps, instant recovery (OSDI'18)")
pmlab_index(fp_tree "B+tree with leaves in PM, inner nodes and fingerprints in DRAM (SIGMOD'16)")
pmlab_index(nv_tree "tree with append-only leaves in PM, an inner array in DRAM that is rebuilt beside its readers (FAST'15)")
pmlab_index(skip_list "skip list: sorted list in PM, towers in DRAM, rebuilt at open")
pmlab_index(skip_list_pm "skip list: towers in PM, too; instant recovery" HEADER skip_list)
pmlab_index(wort "radix tree with nodes of 16 children, commits by one word, instant recovery (FAST'17)" POOL_BYTES 160)
pmlab_index(woart "adaptive radix tree with nodes of 3 to 256 children, commits by one word, instant recovery (FAST'17)"
            POOL_BYTES 96)
pmlab_index(null_index "keeps nothing: shows the cost of the benchmark itself" KEEPS_NOTHING)
