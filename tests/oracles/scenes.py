"""Slow, obvious relevance of `scenes`, written from the definition: one caption, one scene."""

from itr_study.data.scenes.captions import Count, Has, Related, Where
from itr_study.data.scenes.words import ATTRIBUTES


def fit(pattern, thing):
    """The fraction of the named attributes that the thing has."""
    held = []
    for allowed, value, values in zip(pattern, thing[:4], ATTRIBUTES, strict=True):
        if allowed != 2 ** len(values) - 1:  # named
            held.append(bool(allowed & 2 ** value))
    return sum(held) / len(held) if held else 1.0


def holds(assertion, scene, relation):
    """How far one assertion holds; `relation(a, b)` gives the bits of the relations of a to b."""
    things = scene.things
    if isinstance(assertion, Has):
        return max(fit(assertion.pattern, thing) for thing in things)
    if isinstance(assertion, Count):
        found = sum(fit(assertion.pattern, thing) == 1 for thing in things)
        return max(0.0, 1 - abs(found - assertion.number) / assertion.number)
    if isinstance(assertion, Where):
        return float(bool(assertion.places & 2 ** scene.place))
    assert isinstance(assertion, Related)
    return max((fit(assertion.first, a) + fit(assertion.second, b)
                + bool(assertion.how & relation(a, b))) / 3
               for a in things for b in things if a is not b)


def relevance(meaning, scene, relation):
    """How much of a caption holds in a scene."""
    return sum(holds(assertion, scene, relation) for assertion in meaning) / len(meaning)
