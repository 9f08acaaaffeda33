"""Sentences of `scenes`: {a} and {b} stand for descriptions of things, {n} for a number of them."""

ONE = ("{a}", "there is {a}", "a picture of {a}", "a picture with {a}", "{a} can be seen",
       "you can see {a}", "here is {a}", "the picture shows {a}", "we are looking at {a}",
       "somebody has drawn {a}")
TWO = ("{a} and {b}", "{a} together with {b}", "there is {a} and there is {b}",
       "{a} as well as {b}", "a picture of {a} and {b}", "both {a} and {b} can be seen",
       "{b} and also {a}")
MANY = ("{list}", "there is {list}", "a picture of {list}", "we see {list}", "{list} are shown")
MORE = (", and {c}", ", with {c} elsewhere", ", besides {c}", ", and there is also {c}")
HOW_MANY = ("{n}", "there are {n}", "a picture of {n}", "{n} can be seen", "we count {n}",
            "exactly {n}", "somebody has drawn {n}")
ONE_OF = (", one of them {a}", ", among them {a}", ", {a} being one of them")
ONLY_ONE = ("only {n}", "there is just {n}", "a single {noun}", "{n} and no other")
SOME = ("some {nouns}", "a few {nouns}", "several {nouns}", "a picture of some {nouns}",
        "{nouns} of different kinds", "various {nouns}")

# Templates of a relation between {a} and {b}; "the" forms are {the_a}, {the_b}.
RELATED = {
    "left": ("{a} to the left of {b}", "{a} is left of {b}", "{b} with {a} on its left",
             "to the left of {b} there is {a}", "on the left {a}, on the right {b}",
             "{the_a} is on the left of {the_b}"),
    "right": ("{a} to the right of {b}", "{a} is right of {b}", "{b} with {a} on its right",
              "to the right of {b} there is {a}", "{the_a} is on the right of {the_b}"),
    "above": ("{a} above {b}", "{a} is higher than {b}", "{b} with {a} over it",
              "above {b} there is {a}", "{the_a} is above {the_b}", "{a} floats over {b}"),
    "below": ("{a} below {b}", "{a} is lower than {b}", "{b} with {a} beneath it",
              "below {b} there is {a}", "{the_a} is below {the_b}"),
    "on": ("{a} on {b}", "{a} on top of {b}", "{a} sits on {b}", "{b} carries {a}",
           "{b} with {a} on top", "{the_a} rests on {the_b}", "{a} is standing on {b}"),
    "under": ("{a} under {b}", "{a} supports {b}", "{the_b} sits on top of {the_a}"),
    "inside": ("{a} inside {b}", "{a} in {b}", "{a} is within {b}", "{b} with {a} inside it",
               "{b} contains {a}", "{the_a} is inside {the_b}"),
    "around": ("{a} around {b}", "{a} encloses {b}", "{the_a} is around {the_b}"),
    "beside": ("{a} next to {b}", "{a} beside {b}", "{a} and {b} side by side",
               "{a} is beside {b}"),
}
