"""Where the runs of a sweep are done: in this process, in several, or on Ray."""
