"""One run on many workers: steps are dealt out, and (step, input, c) of those that move travel (docs/scaling.md).

Each worker has a replica of the weights. A batch's steps are evaluated at the weights of its start, by whom does not
matter; then all apply all of them, in their order. So replicas stay equal, to each other and to a run of one process.
"""
