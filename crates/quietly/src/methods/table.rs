//! Every method, once: its name in files and on the command line, and what `quietly methods` says about it.
use quietly_engine::link::Link;
use serde::{Deserialize, Serialize};

use super::MethodInfo;

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
const EVEN: &str = "features of like size and little correlation";
const ALLOCATION: &str = "each row in one random step (random allocation), after a few releases from all rows: a certified upper bound";
const PARTS: &str = "each row in one part, no amplification, after a release from all rows: a certified upper bound";
const PLACES: &str =
    "each row in one phase by its place, replace-one only: the cost of one release";
const OUTPUT: &str = "one release of a point that a replaced row moves little, replace-one only";
const COMPOSED: &str =
    "composition of Gaussian sums and private quantiles: a certified upper bound";

/// Declares [`Method`], [`Method::ALL`] and [`Method::about`].
macro_rules! methods {
    (
        asked { $($(#[doc = $doc:literal])+ $asked:ident: $name:literal, $about:tt;)+ }
        found { $($(#[doc = $other_doc:literal])+ $found:ident: $other_name:literal, $other_about:tt;)+ }
    ) => {
        /// How a model is fitted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $asked,)+
            $($(#[doc = $other_doc])+ #[serde(rename = $other_name)] $found,)+
        }

        impl Method {
            /// Every method that can be asked for.
            pub const ALL: [Method; [$($name),+].len()] = [$(Method::$asked),+];

            /// What there is to know about it.
            pub fn about(self) -> MethodInfo {
                match self {
                    $(Method::$asked => about!($name, $about),)+
                    $(Method::$found => about!($other_name, $other_about),)+
                }
            }
        }
    };
}

macro_rules! about {
    ($name:literal, { $($field:ident: $value:expr,)+ }) => {
        MethodInfo { name: $name, $($field: $value),+ }
    };
}

methods! {
    asked {
        /// Full batch where the table fits into memory, otherwise one pass.
        Auto: "auto", {
            what: "full batch if the table fits into memory, otherwise one pass",
            links: BOTH,
            assumes: "nothing",
            guarantee: "as the method it uses",
            when: "by default",
            from: "quietly",
        };
        /// Every row in every step, from memory.
        FullBatch: "full-batch", {
            what: "whitened full-batch descent, robust first, high clip last",
            links: BOTH,
            assumes: "nothing",
            guarantee: COMPOSED,
            when: "the most accurate; table in memory",
            from: "quietly",
        };
        /// Each row in one step drawn at random, streamed.
        OnePass: "one-pass", {
            what: "the same idea, each row read once",
            links: BOTH,
            assumes: "nothing",
            guarantee: ALLOCATION,
            when: "tables of any size, or in a hurry",
            from: "quietly",
        };
        /// Full batch, whitened, clipped at a private median.
        AdaptiveGd: "adaptive-gd", {
            what: "whitened full-batch descent, clipped at a private median",
            links: BOTH,
            assumes: "residuals without heavy tails or skew",
            guarantee: COMPOSED,
            when: "well-specified models",
            from: "Liu, Jain, Kong, Oh, Suggala: Near Optimal Private and Robust Linear Regression",
        };
        /// One row a step, one clip.
        DpSsgd: "dp-ssgd", {
            what: "one row a step, one private clip for all",
            links: LINEAR,
            assumes: EVEN,
            guarantee: ALLOCATION,
            when: "for research: minibatches are far better",
            from: VTJ,
        };
        /// Minibatches with adaptive clipping.
        DpAmbssgd: "dp-ambssgd", {
            what: "one pass of minibatches, clipped at a decreasing private quantile",
            links: LINEAR,
            assumes: EVEN,
            guarantee: ALLOCATION,
            when: "one pass over well-scaled features",
            from: VTJ,
        };
        /// The same as published: parts without amplification, thresholds by noisy counts.
        DpAmbssgdPublished: "dp-ambssgd-published", {
            what: "the same with DP-STAT on rows of its own, as published and corrected",
            links: LINEAR,
            assumes: EVEN,
            guarantee: PARTS,
            when: "for research: to compare with the paper",
            from: VTJ,
        };
        /// One row a step, thresholds from public rows.
        DpGlmtron: "dp-glmtron", {
            what: "one row a step, clipped at a quantile of public rows (--public)",
            links: RELU,
            assumes: "public rows like the private ones; features of like size",
            guarantee: ALLOCATION,
            when: "for research",
            from: DLW,
        };
        /// Minibatches with private or public thresholds.
        DpMbglmtron: "dp-mbglmtron", {
            what: "one pass of minibatches by GLMtron; thresholds private, or public with --public",
            links: RELU,
            assumes: EVEN,
            guarantee: ALLOCATION,
            when: "one pass over well-scaled features",
            from: DLW,
        };
        /// The same as published: parts without amplification, thresholds by noisy counts.
        DpMbglmtronPublished: "dp-mbglmtron-published", {
            what: "the same with DP-Threshold on rows of its own, as published and corrected",
            links: RELU,
            assumes: EVEN,
            guarantee: PARTS,
            when: "for research: to compare with the paper",
            from: DLW,
        };
        /// Prefix sums released by a tree.
        DpTaglmtron: "dp-taglmtron", {
            what: "one pass by GLMtron, prefix sums released by a tree",
            links: RELU,
            assumes: EVEN,
            guarantee: "each row in one leaf of the tree, no amplification: a certified upper bound",
            when: "for research; large epsilon",
            from: "Ding et al.: Revisiting Differentially Private ReLU Regression (our definition)",
        };
        /// Full batch with bounds known beforehand, projected.
        DpPgd: "dp-pgd", {
            what: "projected full-batch descent with bounds known beforehand (--radius)",
            links: BOTH,
            assumes: "the norm of the weights is known",
            guarantee: COMPOSED,
            when: "for research",
            from: "Shen et al.: Differentially Private Non-convex Learning for Multi-layer Neural Networks",
        };
        /// Poisson samples with one clip.
        DpSgd: "dp-sgd", {
            what: "Poisson samples, one private clip for all",
            links: EVERY,
            assumes: EVEN,
            guarantee: "Poisson sampling, after a few releases from all rows: a certified upper bound",
            when: "to compare with what most people use",
            from: SGD,
        };
        /// DP-SGD as one pass of minibatches with adaptive clipping.
        DpSgdOnePass: "dp-sgd-one-pass", {
            what: "the same gradients in one pass of minibatches; thresholds as dp-mbglmtron's",
            links: RELU,
            assumes: EVEN,
            guarantee: ALLOCATION,
            when: "for research: to compare with dp-mbglmtron",
            from: SGD,
        };
        /// DP-SGD with one row a step, thresholds from public rows.
        DpSgdOneRow: "dp-sgd-one-row", {
            what: "the same gradients, one row a step; thresholds from public rows (--public)",
            links: RELU,
            assumes: "public rows like the private ones; features of like size",
            guarantee: ALLOCATION,
            when: "for research: to compare with dp-glmtron",
            from: SGD,
        };
        /// Noisy sufficient statistics, regularised.
        AdaSsp: "adassp", {
            what: "noisy second moments, regularised by a private eigenvalue",
            links: LINEAR,
            assumes: "a bounded target",
            guarantee: COMPOSED,
            when: "one round over the data",
            from: "Wang: Revisiting differentially private linear regression",
        };
        /// The same, boosted by clipped residuals.
        BoostedAdaSsp: "boosted-adassp", {
            what: "AdaSSP, then rounds of clipped residuals",
            links: LINEAR,
            assumes: "a bounded target",
            guarantee: COMPOSED,
            when: "to compare with the default",
            from: "Tang et al.: Improved Differentially Private Regression via Gradient Boosting",
        };
        /// A deep point among many least-squares fits.
        TukeyEm: "tukey-em", {
            what: "many least-squares fits on parts; a deep point among them is drawn",
            links: LINEAR,
            assumes: "some thousand rows per feature at epsilon 1, more at less",
            guarantee: "propose-test-release and the exponential mechanism",
            when: "to compare: features need no common scale",
            from: "Amin, Joseph, Ribero, Vassilvitskii: Easy Differentially Private Linear Regression",
        };
        /// The same on rows that are privately centred, scaled and bounded.
        ScaledAmp: "scaled-amp", {
            what: "the same on rows that are privately centred, scaled and bounded",
            links: CONVEX,
            assumes: "nothing",
            guarantee: "objective perturbation with a certified minimiser, after three private statistics",
            when: "the default for classifiers",
            from: "quietly, after Iyengar et al.",
        };
        /// The minimiser of a perturbed objective.
        Amp: "amp", {
            what: "the minimiser of a perturbed objective, on rows of a private norm",
            links: CONVEX,
            assumes: "nothing",
            guarantee: "objective perturbation with a certified minimiser, after a private quantile",
            when: "rows of even size, or weights in a set",
            from: "Iyengar et al.: Towards Practical Differentially Private Convex Optimization",
        };
        /// Full-batch descent on clipped gradients of a convex loss.
        DpGd: "dp-gd", {
            what: "full-batch descent on noisy gradients, on rows of a private norm",
            links: CONVEX,
            assumes: "nothing",
            guarantee: COMPOSED,
            when: "the default for classifiers on small tables; nonsmooth losses, or to compare",
            from: "Bassily, Smith, Thakurta: Private Empirical Risk Minimization",
        };
        /// Steps towards the lowest vertex of the set.
        FrankWolfe: "frank-wolfe", {
            what: "a few steps towards the vertex that a noisy gradient points to",
            links: CONVEX,
            assumes: "a bounded set with few corners, smooth loss",
            guarantee: COMPOSED,
            when: "many features and an L1 ball or simplex: sparse weights",
            from: "Talwar, Thakurta, Zhang: Nearly Optimal Private LASSO (with Gaussian noise)",
        };
        /// Passes of gradient steps, of which the last point is released.
        ScPsgd: "sc-psgd", {
            what: "epochs of minibatches, noise on the last point; has delta 0",
            links: CONVEX,
            assumes: "a bounded set, smooth loss",
            guarantee: OUTPUT,
            when: "to compare: bolt-on privacy",
            from: "Wu, Li, Kumar, Chaudhuri, Jha, Naughton: Bolt-on Differential Privacy for Scalable SGD-based Analytics",
        };
        /// Full-batch descent of which the last point is released.
        GdOp: "gd-op", {
            what: "full-batch descent, noise on the last point; has delta 0",
            links: CONVEX,
            assumes: "a bounded set, smooth loss",
            guarantee: OUTPUT,
            when: "to compare; small tables with a ridge",
            from: "Wu et al.: Bolt-on Differential Privacy, with one batch",
        };
        /// Phases of single passes, each released.
        PhasedSgd: "phased-sgd", {
            what: "localisation: halves of the rows, quarters of the step",
            links: CONVEX,
            assumes: "a bounded set, smooth loss",
            guarantee: PLACES,
            when: "one pass over a table, for research",
            from: SHW,
        };
        /// Phased-SGD in balls that halve.
        Psa: "psa", {
            what: "Phased-SGD in balls that halve",
            links: CONVEX,
            assumes: "a bounded set, smooth loss",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
        /// Phased-SGD on parts that double, for strongly convex losses.
        PhasedSgdSc: "phased-sgd-sc", {
            what: "Phased-SGD on parts that double",
            links: CONVEX,
            assumes: "a bounded set, smooth loss, a ridge",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
        /// Phased-SGD-SC around centres that follow.
        PsaTwo: "psa-ii", {
            what: "Phased-SGD-SC around centres that follow",
            links: CONVEX,
            assumes: "a bounded set, smooth loss, known growth (theta and constant)",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
        /// Phased-SGD on parts that double.
        IteratedPhasedSgd: "iterated-phased-sgd", {
            what: "Phased-SGD on parts that double",
            links: CONVEX,
            assumes: "a bounded set, smooth loss",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
        /// Phases of certified minimisers.
        PhasedErm: "phased-erm", {
            what: "phases that minimise near where the one before ended",
            links: CONVEX,
            assumes: "a bounded set",
            guarantee: PLACES,
            when: "nonsmooth losses; the best of its paper",
            from: SHW,
        };
        /// Passes that double while steps halve.
        EpochDpSgd: "epoch-dp-sgd", {
            what: "epochs that double while step sizes halve",
            links: CONVEX,
            assumes: "a bounded set, smooth loss, a ridge",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
        /// Epoch-DP-SGD from Iterated Phased-SGD.
        FasterDpsgdSc: "faster-dpsgd-sc", {
            what: "Epoch-DP-SGD started by Iterated Phased-SGD",
            links: CONVEX,
            assumes: "a bounded set, smooth loss, a ridge",
            guarantee: PLACES,
            when: "for research",
            from: SHW,
        };
    }
    // The names of what auto takes for numbers, of a plan without noise and of a network. They are not chosen by name.
    found {
        /// The linear model, then bends of columns and pairs.
        Additive: "additive", {
            what: "full batch first, then bends of columns and pairs for what it leaves over",
            links: LINEAR,
            assumes: "nothing",
            guarantee: COMPOSED,
            when: "fit auto, where the target is a number",
            from: "quietly",
        };
        /// Least squares without noise: what ε = ∞ asks for.
        Exact: "exact", {
            what: "least squares without noise",
            links: BOTH,
            assumes: "nothing",
            guarantee: "none",
            when: "epsilon is infinite",
            from: "quietly",
        };
        /// DP-SGD on a Kolmogorov–Arnold network.
        Kan: "kan", {
            what: "DP-SGD on a Kolmogorov-Arnold network, noise correlated between steps where that helps",
            links: &[],
            assumes: "features with public ranges",
            guarantee: "sums of clipped gradients under the sampler of the plan: a certified upper bound",
            when: "where sums of functions of single features do not do",
            from: "Wang et al.: Population Risk Bounds for Kolmogorov-Arnold Networks Trained by DP-SGD with Correlated Noise",
        };
    }
}
