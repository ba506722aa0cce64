//! A: the accountant refuses.
use super::Entry;

pub(super) const ENTRIES: [Entry; 4] = [
    Entry {
        code: "A01",
        title: "a parameter is outside its domain",
        why: "A parameter has a value for which the theorem means nothing, such as noise below zero, a rate above \
              1, no steps at all or lambda = 1. A delta of 0 has no finite answer wherever the noise is Gaussian. The \
              message names the flag, the values it may have and the one it has.",
        fix: "Change that flag. Nothing was computed, and no default took its place.",
        example: "quietly account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5",
    },
    Entry {
        code: "A02",
        title: "no theorem covers this scheme",
        why: "What was described can be run, but nobody has proven a useful price for it, at least under this \
              neighbouring relation. A price for some other scheme would be a guess, and is not given.",
        fix: "Use the scheme that the message names, and run that one as well.",
        example: "quietly account correlated --bands 1,0.5 --period 4 --sampling-rate 0.1 --noise-multiplier 5 --steps 100 --delta 1e-5",
    },
    Entry {
        code: "A03",
        title: "a count, or a product of counts, is too large",
        why: "Steps are counted up to ten million in all: steps times epochs, too. Beyond that rounding could not be \
              bounded, and a wrapped product would charge for too little.",
        fix: "Lower the flag that is named, or split the run and add up the epsilons and the deltas of its parts.",
        example: "quietly account random-allocation --steps 1000 --epochs 10 --noise-multiplier 2 --delta 1e-5",
    },
    Entry {
        code: "A04",
        title: "no noise meets the budget",
        why: "`calibrate` tries noise from 0.1 to 100000 times what one record can add. Even the most of it costs more \
              than was asked for.",
        fix: "Ask for a larger epsilon or delta, take fewer steps, or sample less.",
        example: "quietly calibrate poisson --sampling-rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    },
];
