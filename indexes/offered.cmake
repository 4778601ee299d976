# One line offers an index in `pmlab list`, `bench` and `verify`, native and simulated. docs/adding-an-index.md.
pmlab_index(cceh "extendible hash table with 256-byte windows, instant recovery (FAST'19)")
pmlab_index(fast_fair "B+tree with sorted nodes, lock-free reads, instant recovery (FAST'18)")
pmlab_index(null_index "keeps nothing: shows what the benchmark itself costs" KEEPS_NOTHING)
