"""A classifier taught by thumbs: it shows a class, and is told whether that was right. No label is ever given.

python examples/bandit_classifier.py
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from sparsezo.sklearn import BanditClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)

classifier = BanditClassifier()
for k in range(0, len(X), 50):
    batch = X[k : k + 50]
    shown = classifier.predict(batch) if k else [i % 10 for i in range(50)]  # what people saw
    thumbs = shown == y[k : k + 50]  # what they said of it
    classifier.partial_fit(batch, feedback=thumbs, shown=shown, classes=range(10))
print(f"accuracy by {len(X)} thumbs: {classifier.score(X_test, y_test):.2f}")
print(f"by as many labels: {BanditClassifier().fit(X, y).score(X_test, y_test):.2f}")
