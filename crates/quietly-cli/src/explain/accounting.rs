//! A: the accountant refuses.
use super::Entry;

pub(super) const ENTRIES: [Entry; 4] = [
    Entry {
        code: "A01",
        title: "a parameter is outside its domain",
        why: "A parameter has a value that the theorem does not allow, such as negative noise, a rate above 1, \
              zero steps or lambda = 1. A delta of 0 has no finite answer wherever the noise is Gaussian. The \
              message names the flag, its valid values and the value given.",
        fix: "Change that flag. Nothing was computed, and no default was used instead.",
        example: "quietly account poisson --sampling-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5",
    },
    Entry {
        code: "A02",
        title: "no theorem covers this scheme",
        why: "The scheme can be run, but no useful bound is known for it, at least under this neighbouring \
              relation. The bound of another scheme would not hold, so none is given.",
        fix: "Use the scheme that the message names, for the accounting and for the run.",
        example: "quietly account correlated --bands 1,0.5 --period 4 --sampling-rate 0.1 --noise-multiplier 5 --steps 100 --delta 1e-5",
    },
    Entry {
        code: "A03",
        title: "a count, or a product of counts, is too large",
        why: "The accountant supports up to ten million steps in total, steps times epochs included. Beyond that, \
              rounding errors are not bounded.",
        fix: "Lower the flag that is named, or split the run, and add the epsilons and the deltas of its parts.",
        example: "quietly account random-allocation --steps 1000 --epochs 10 --noise-multiplier 2 --delta 1e-5",
    },
    Entry {
        code: "A04",
        title: "no noise meets the budget",
        why: "`calibrate` searches noise multipliers from 0.1 to 100000. Even the largest exceeds the budget.",
        fix: "Give a larger epsilon or delta, use fewer steps, or lower the sampling rate.",
        example: "quietly calibrate poisson --sampling-rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5",
    },
];
