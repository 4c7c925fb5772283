"""The numbers that stand for words in compiled code. No Numba here: the settings and the command line read them too."""

# Rules (rules.py)
TWO_POINT, SYMMETRIC, COMPARISON, PREFERENCE, BASELINE, FIRST_ORDER, SUPERVISED = range(7)
PART, LABEL, PAIR, RATE = range(7, 11)  # which learn from what an answer says (design 4)
PAIRWISE, CROSS_ENTROPY = range(11, 13)  # first-order, too (Sokolov et al. 2016)
# as PART to RATE: which span is here, if any; a whole output, with what is wrong corrected; the best of some
SPAN, REVIEW, BEST = range(13, 16)
OWN = 16  # any of somebody's own, zeroth-order (docs/rules.md)
MOST_POINTS = 8  # outputs that one may ask about in a step

# Answers (questions.py); one to label is a label's number, one to rate a loss
NO, YES = range(2)
FIRST, SECOND, TIE = range(3)

# An answer to span is NO_SPAN, or 1 + (first * SPAN_BASE + last) * SPAN_BASE + tag, which float64 holds exactly:
# the tokens it begins and ends with, and the tag that begins it
NO_SPAN, SPAN_BASE = 0, 2**17

# What a review says of a part of the output
NOT_SAID, STANDING, CORRECTED = range(3)

# What a question is about: the smallest part there is (a token, a document), or a chunk; of a review: what is marked,
# or what is worth more, that or all of it
ABOUT_TOKEN, ABOUT_CHUNK, ABOUT_MARKED, ABOUT_EITHER = range(4)

CANDIDATES = 5  # at most, of which the best is asked for

# Which inputs are asked about: any, or what the model is unsure of, most inputs being passed over, or none of them
AT_RANDOM, UNSURE, AT_ONCE = range(3)

# Perturbations (perturbations.py)
ALL, ACTIVE, SCORE = range(3)

# Criteria (settings.py)
MAP, ANNEALED = range(2)

# Models of raters (raters.py)
EXACT, FLIP, RATING, BINARY = range(4)
