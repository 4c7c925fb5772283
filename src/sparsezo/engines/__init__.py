"""Where the runs of a sweep are done: in this process, in several, and later on other machines."""
