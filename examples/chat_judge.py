"""A chat model as an annotator: any endpoint that speaks the common HTTP protocol (POST /v1/chat/completions).

sparsezo serve chunking --inputs raw.txt --tags PER=person,LOC=place --person Ann --program judge
CHAT_API_KEY=... sparsezo join LINK --rate 60 \
    --scorer "python examples/chat_judge.py http://127.0.0.1:8080 --model NAME"

LINK is the one that serve prints for judge. The model is asked as a person would be, one question at a time, and what
it says that is none of the choices is skipped. Nothing but the standard library is needed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request

ROLE = "You annotate text. Answer with one of the choices and nothing else; with skip where you cannot tell."
TRIES = 4


def marked(question: dict) -> str:
    """The text of a question: a document, or words with the part that is asked about in [[ ]]."""
    if "words" not in question:
        shown = question.get("document") or question.get("source") or ""
        options = question.get("hypotheses") or question.get("classes") or ()
        return "\n".join([shown, *(f"({k}) {each}" for k, each in enumerate(options, 1))])
    words, gaps = list(question["words"]), question.get("gaps") or [" "] * len(question["words"])
    if question["rule"] == "review":  # what the model has found
        words = [word if tag == "O" else f"[{word}]({tag})" for word, tag in zip(words, question["tags"], strict=True)]
    if "first" in question:
        words[question["first"]] = "[[" + words[question["first"]]
        words[question["last"]] += "]]"
    lines = ["".join(word + gap for word, gap in zip(words, gaps, strict=True))]
    return "\n".join(lines + [f"({k}) {' '.join(each)}" for k, each in enumerate(question.get("outputs", ()), 1)])


def choices_of(question: dict) -> list[str]:
    """What it may say. Grades are left to people, and so are sentences of which not all is right."""
    if question["rule"] in ("rate", "review"):
        return ["right"] if question["rule"] == "review" else []
    return [*(("yes",) if question["rule"] == "span" else ()), *question["choices"]]


def ask(url: str, model: str, text: str, seconds: float) -> str:
    """The reply of the model to one message."""
    messages = [{"role": "system", "content": ROLE}, {"role": "user", "content": text}]
    body = json.dumps({"model": model, "messages": messages, "temperature": 0, "max_tokens": 20}).encode()
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("CHAT_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/chat/completions", body, headers)
    for left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=seconds) as reply:
                return json.load(reply)["choices"][0]["message"]["content"] or ""
        except urllib.error.HTTPError as error:
            if not left or (error.code != 429 and error.code < 500):
                raise
        time.sleep(0.5 * 2 ** (TRIES - left))
    raise AssertionError("the last try returns or raises")


def judged(question: dict, url: str, model: str, seconds: float) -> str:
    """One of the choices, or skip."""
    choices = choices_of(question)
    if not choices:
        return "skip"
    names = question.get("names", {})
    listed = ", ".join(f"{each} ({names[each]})" if each in names else each for each in choices)
    said = ask(url, model, f"{marked(question)}\n\n{question['question']}\nChoices: {listed}, skip", seconds)
    word = said.strip().strip(".\"'`*").casefold()
    return next((each for each in choices if each.casefold() == word), "skip")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chat model answers sparsezo's questions.")
    parser.add_argument("url", help="where it is, without /v1")
    parser.add_argument("--model", default="default", help="which model the endpoint should take")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long one reply may take")
    given = parser.parse_args()
    for line in sys.stdin:  # one question a line, and one answer a line, at once
        print(json.dumps(judged(json.loads(line), given.url, given.model, given.seconds)), flush=True)
