//! What there is to say about every method.
use quietly_engine::link::Link;
use serde::Serialize;

use super::Method;

/// A method as `quietly methods` shows it.
#[derive(Clone, Copy, Debug, Serialize)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// Which models it fits.
    pub links: &'static [Link],
    /// What it assumes, for its accuracy; privacy assumes nothing.
    pub assumes: &'static str,
    /// Why it is private.
    pub guarantee: &'static str,
    /// When to take it.
    pub when: &'static str,
    /// Where it is from.
    pub from: &'static str,
}

const BOTH: &[Link] = &[Link::Linear, Link::Relu];
const LINEAR: &[Link] = &[Link::Linear];
const CONVEX: &[Link] =
    &[Link::Logistic, Link::Softmax, Link::Svm, Link::Robust, Link::Quantile, Link::Linear];
const EVERY: &[Link] = &[
    Link::Linear,
    Link::Relu,
    Link::Logistic,
    Link::Softmax,
    Link::Svm,
    Link::Robust,
    Link::Quantile,
];
const RELU: &[Link] = &[Link::Relu];
const VTJ: &str =
    "Varshney, Thakurta, Jain: (Nearly) Optimal Private Linear Regression via Adaptive Clipping";
const SHW: &str =
    "Su, Hu, Wang: Faster Rates of Differentially Private Stochastic Convex Optimization";
const DLW: &str =
    "Ding, Lei, Wang, Zheng, Wang, Xu: Nearly Optimal Differentially Private ReLU Regression";
const SGD: &str = "Abadi et al.: Deep Learning with Differential Privacy";

impl Method {
    /// What there is to know about it.
    pub fn about(self) -> MethodInfo {
        let about = |name, what, links, assumes, guarantee, when, from| MethodInfo {
            name,
            what,
            links,
            assumes,
            guarantee,
            when,
            from,
        };
        let even = "features of like size and little correlation";
        let allocation = "each row in one random step (random allocation), after a few questions to all: a certified upper bound";
        let parts = "each row in one part, no amplification, after a question to all: a certified upper bound";
        let places =
            "each row in one phase by its place, replace-one only: the price of one release";
        let output = "one release of a point that a replaced row moves little, replace-one only";
        let composed =
            "composition of Gaussian sums and private quantiles: a certified upper bound";
        match self {
            Method::Auto => about(
                "auto",
                "full batch if the table fits into memory, otherwise one pass",
                BOTH,
                "nothing",
                "as the one it takes",
                "unless you know better",
                "quietly",
            ),
            Method::FullBatch => about(
                "full-batch",
                "whitened full-batch descent, robust first, high clip last",
                BOTH,
                "nothing",
                composed,
                "the most accurate; table in memory",
                "quietly",
            ),
            Method::OnePass => about(
                "one-pass",
                "the same idea, each row read once",
                BOTH,
                "nothing",
                allocation,
                "tables of any size, or in a hurry",
                "quietly",
            ),
            Method::Exact => about(
                "exact",
                "least squares without noise",
                BOTH,
                "nothing",
                "none",
                "epsilon is infinite",
                "quietly",
            ),
            Method::DpSsgd => about(
                "dp-ssgd",
                "one row a step, one private clip for all",
                LINEAR,
                even,
                allocation,
                "for research: minibatches are far better",
                VTJ,
            ),
            Method::DpAmbssgd => about(
                "dp-ambssgd",
                "one pass of minibatches, clipped at a private quantile that falls",
                LINEAR,
                even,
                allocation,
                "one pass over well-scaled features",
                VTJ,
            ),
            Method::DpAmbssgdPublished => about(
                "dp-ambssgd-published",
                "the same with DP-STAT on rows of its own, as published and corrected",
                LINEAR,
                even,
                parts,
                "for research: to compare with the paper",
                VTJ,
            ),
            Method::DpGlmtron => about(
                "dp-glmtron",
                "one row a step, clipped at a quantile of public rows (--public)",
                RELU,
                "public rows like the private ones; features of like size",
                allocation,
                "for research",
                DLW,
            ),
            Method::DpMbglmtron => about(
                "dp-mbglmtron",
                "one pass of minibatches by GLMtron; thresholds private, or public with --public",
                RELU,
                even,
                allocation,
                "one pass over well-scaled features",
                DLW,
            ),
            Method::DpMbglmtronPublished => about(
                "dp-mbglmtron-published",
                "the same with DP-Threshold on rows of its own, as published and corrected",
                RELU,
                even,
                parts,
                "for research: to compare with the paper",
                DLW,
            ),
            Method::DpTaglmtron => about(
                "dp-taglmtron",
                "one pass by GLMtron, prefix sums released by a tree",
                RELU,
                even,
                "each row in one leaf of the tree, no amplification: a certified upper bound",
                "for research; large epsilon",
                "Ding et al.: Revisiting Differentially Private ReLU Regression (our definition)",
            ),
            Method::DpPgd => about(
                "dp-pgd",
                "projected full-batch descent with bounds known beforehand (--radius)",
                BOTH,
                "the norm of the weights is known",
                composed,
                "for research",
                "Shen et al.: Differentially Private Non-convex Learning for Multi-layer Neural Networks",
            ),
            Method::DpSgd => about(
                "dp-sgd",
                "Poisson samples, one private clip for all",
                EVERY,
                even,
                "Poisson sampling, after a few questions to all rows: a certified upper bound",
                "to compare with what most people use",
                SGD,
            ),
            Method::DpSgdOnePass => about(
                "dp-sgd-one-pass",
                "the same gradients in one pass of minibatches; thresholds as dp-mbglmtron's",
                RELU,
                even,
                allocation,
                "for research: to compare with dp-mbglmtron",
                SGD,
            ),
            Method::DpSgdOneRow => about(
                "dp-sgd-one-row",
                "the same gradients, one row a step; thresholds from public rows (--public)",
                RELU,
                "public rows like the private ones; features of like size",
                allocation,
                "for research: to compare with dp-glmtron",
                SGD,
            ),
            Method::AdaptiveGd => about(
                "adaptive-gd",
                "whitened full-batch descent, clipped at a private median",
                BOTH,
                "residuals without heavy tails or skew",
                composed,
                "well-specified models",
                "Liu, Jain, Kong, Oh, Suggala: Near Optimal Private and Robust Linear Regression",
            ),
            Method::AdaSsp => about(
                "adassp",
                "noisy second moments, regularised by a private eigenvalue",
                LINEAR,
                "a bounded target",
                composed,
                "one round over the data",
                "Wang: Revisiting differentially private linear regression",
            ),
            Method::BoostedAdaSsp => about(
                "boosted-adassp",
                "AdaSSP, then rounds of clipped residuals",
                LINEAR,
                "a bounded target",
                composed,
                "to compare: a rival of the default",
                "Tang et al.: Improved Differentially Private Regression via Gradient Boosting",
            ),
            Method::TukeyEm => about(
                "tukey-em",
                "many least-squares fits on parts; a deep point among them is drawn",
                LINEAR,
                "some thousand rows per feature at epsilon 1, more at less",
                "propose-test-release and the exponential mechanism",
                "to compare: features need no common scale",
                "Amin, Joseph, Ribero, Vassilvitskii: Easy Differentially Private Linear Regression",
            ),
            Method::Amp => about(
                "amp",
                "the minimiser of a perturbed objective, on rows of a private norm",
                CONVEX,
                "nothing",
                "objective perturbation with a certified minimiser, after a private quantile",
                "rows of even size, or weights in a set",
                "Iyengar et al.: Towards Practical Differentially Private Convex Optimization",
            ),
            Method::ScaledAmp => about(
                "scaled-amp",
                "the same on rows that are privately centred, scaled and bounded",
                CONVEX,
                "nothing",
                "objective perturbation with a certified minimiser, after three private statistics",
                "the default for classifiers",
                "quietly, after Iyengar et al.",
            ),
            Method::DpGd => about(
                "dp-gd",
                "full-batch descent on noisy gradients, on rows of a private norm",
                CONVEX,
                "nothing",
                composed,
                "the default for classifiers on small tables; losses with a corner, or to compare",
                "Bassily, Smith, Thakurta: Private Empirical Risk Minimization",
            ),
            Method::FrankWolfe => about(
                "frank-wolfe",
                "a few steps towards the vertex that a noisy gradient points to",
                CONVEX,
                "a bounded set with few corners, smooth loss",
                composed,
                "many features and an L1 ball or simplex: sparse weights",
                "Talwar, Thakurta, Zhang: Nearly Optimal Private LASSO (with Gaussian noise)",
            ),
            Method::ScPsgd => about(
                "sc-psgd",
                "passes in batches, noise on the last point; has delta 0",
                CONVEX,
                "a bounded set, smooth loss",
                output,
                "to compare: bolt-on privacy",
                "Wu, Li, Kumar, Chaudhuri, Jha, Naughton: Bolt-on Differential Privacy for Scalable SGD-based Analytics",
            ),
            Method::GdOp => about(
                "gd-op",
                "full-batch descent, noise on the last point; has delta 0",
                CONVEX,
                "a bounded set, smooth loss",
                output,
                "to compare; small tables with a ridge",
                "Wu et al.: Bolt-on Differential Privacy, with one batch",
            ),
            Method::PhasedSgd => about(
                "phased-sgd",
                "localisation: halves of the rows, quarters of the step",
                CONVEX,
                "a bounded set, smooth loss",
                places,
                "one pass over a table, for research",
                SHW,
            ),
            Method::Psa => about(
                "psa",
                "Phased-SGD in balls that halve",
                CONVEX,
                "a bounded set, smooth loss",
                places,
                "for research",
                SHW,
            ),
            Method::PhasedSgdSc => about(
                "phased-sgd-sc",
                "Phased-SGD on parts that double",
                CONVEX,
                "a bounded set, smooth loss, a ridge",
                places,
                "for research",
                SHW,
            ),
            Method::PsaTwo => about(
                "psa-ii",
                "Phased-SGD-SC around centres that follow",
                CONVEX,
                "a bounded set, smooth loss, known growth (theta and rate)",
                places,
                "for research",
                SHW,
            ),
            Method::IteratedPhasedSgd => about(
                "iterated-phased-sgd",
                "Phased-SGD on parts that double",
                CONVEX,
                "a bounded set, smooth loss",
                places,
                "for research",
                SHW,
            ),
            Method::PhasedErm => about(
                "phased-erm",
                "phases that minimise near where the one before ended",
                CONVEX,
                "a bounded set",
                places,
                "losses with a corner; the best of its paper",
                SHW,
            ),
            Method::EpochDpSgd => about(
                "epoch-dp-sgd",
                "passes that double while steps halve",
                CONVEX,
                "a bounded set, smooth loss, a ridge",
                places,
                "for research",
                SHW,
            ),
            Method::FasterDpsgdSc => about(
                "faster-dpsgd-sc",
                "Epoch-DP-SGD started by Iterated Phased-SGD",
                CONVEX,
                "a bounded set, smooth loss, a ridge",
                places,
                "for research",
                SHW,
            ),
            Method::Kan => about(
                "kan",
                "DP-SGD on a Kolmogorov-Arnold network, noise mixed from step to step where that helps",
                &[],
                "features with public ranges",
                "sums of clipped gradients under the sampler of the plan: a certified upper bound",
                "where sums of functions of single features do not do",
                "Wang et al.: Population Risk Bounds for Kolmogorov-Arnold Networks Trained by DP-SGD with Correlated Noise",
            ),
        }
    }
}
