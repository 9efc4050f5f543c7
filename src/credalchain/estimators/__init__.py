"""Classifiers in the manner of scikit-learn, over any base."""
