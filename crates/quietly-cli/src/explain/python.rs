//! P: the Python package refuses a call before anything is read.
use super::Entry;

pub(super) const ENTRIES: [Entry; 3] = [
    Entry {
        code: "P01",
        title: "a step before the model learns from the rows",
        why: "Python only. A pipeline of scikit-learn has a transformer before the private model that learns from the rows without \
              noise: means, categories, principal components. No certificate covers what it learns. Nothing was spent.",
        fix: "Leave out the step, as models scale within their budget; use quietly.StandardScaler; or give the step its public \
              parameters, such as OneHotEncoder(categories=[...]). If what it learns is public, set public_steps=True on the \
              model; the certificate then says that the step is not covered.",
        example: "quietly explain P01",
    },
    Entry {
        code: "P02",
        title: "a model would be fitted several times",
        why: "Python only. Cross-validation, grid searches and ensembles of scikit-learn fit a model many times on the same rows. Every \
              fit spends its epsilon again, and the scores are not private. Nothing was spent.",
        fix: "Use quietly.tune, which spends once, or select on public rows. With a ledger opened with refits=\"charge\", every fit is charged.",
        example: "quietly explain P02",
    },
    Entry {
        code: "P03",
        title: "a loaded model does not say how it was fitted",
        why: "Python only. The estimator comes from a model file that does not hold all of its parameters: an older version or the command \
              line wrote it. A default in their place could spend more than the first fit did. Nothing was spent.",
        fix: "Set the parameters that the message names, with set_params, and fit again. Predictions need none of them.",
        example: "quietly explain P03",
    },
];
