"""The numbers that stand for words in compiled code. No Numba here: the settings and the command line read them too."""

# Rules (rules.py)
TWO_POINT, SYMMETRIC, COMPARISON, PREFERENCE, BASELINE, FIRST_ORDER, SUPERVISED = range(7)

# Perturbations (perturbations.py)
ALL, ACTIVE, SCORE = range(3)

# Criteria (settings.py)
MAP, ANNEALED = range(2)

# Models of raters (raters.py)
EXACT, FLIP, RATING, BINARY = range(4)
