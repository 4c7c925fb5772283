"""A metric of one's own: a class has loss 0 where one of its words stands in the document, else 1.

sparsezo train text --train raw.txt --classes sci,talk --rule preference --answers 1000 \
    --scorer "python examples/keyword_scorer.py" -o topics.szo
"""

import json
import sys

WORDS = {"sci": {"orbit", "rocket", "energy"}, "talk": {"tax", "law", "debate"}}

for line in sys.stdin:  # one question a line
    question = json.loads(line)
    words = set(question["document"].lower().split())
    losses = [0 if words & WORDS[name] else 1 for name in question["classes"]]
    print(json.dumps(losses), flush=True)  # one answer a line, at once
