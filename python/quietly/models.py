"""The models. Parameters are named like the flags of the command line. All arguments are keywords."""

from collections.abc import Sequence
from typing import Any

from ._quietly import Schema
from .errors import ParameterError
from .kinds import _Classifier, _Probable, _Regressor
from .parameters import described


@described
class AutoRegressor(_Regressor):
    """A number, by the model that rows, columns and budget suggest: an additive one, or a weighted sum where they allow no more.

    ``plan().why`` says which, and why."""

    _family = "auto"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        target_range: tuple[float, float] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.target_range = target_range


@described
class AutoClassifier(_Probable):
    """Two or more classes, with probabilities, by the model that is the default for them.

    ``plan().why`` says which, and why."""

    _family = "auto"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.classes = classes


@described
class LinearRegression(_Regressor):
    """A weighted sum of the features, by least squares."""

    _family = "linear"
    _links = (("linear", False),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        target_range: tuple[float, float] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
        constraint: str | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.target_range = target_range
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.constraint = constraint
        self.ridge = ridge
        self.lasso = lasso


@described
class ReLURegression(_Regressor):
    """A weighted sum of the features, or 0 where that is negative."""

    _family = "relu"
    _links = (("relu", False),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        target_range: tuple[float, float] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.target_range = target_range
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius


@described
class QuantileRegressor(_Regressor):
    """A weighted sum that a share ``quantile`` of the targets lies below."""

    _family = "quantile"
    _links = (("quantile", False),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        quantile: float = 0.5,
        target_range: tuple[float, float] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
        constraint: str | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.quantile = quantile
        self.target_range = target_range
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.constraint = constraint
        self.ridge = ridge
        self.lasso = lasso


@described
class HuberRegressor(_Regressor):
    """A weighted sum that outliers hardly move: `quietly fit robust`."""

    _family = "robust"
    _links = (("robust", False),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        target_range: tuple[float, float] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
        constraint: str | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.target_range = target_range
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.constraint = constraint
        self.ridge = ridge
        self.lasso = lasso


@described
class LogisticRegression(_Probable):
    """Two or more classes, with probabilities."""

    _family = "logistic"
    _links = (("logistic", False), ("softmax", False))

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        classes: Sequence[Any] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
        constraint: str | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.classes = classes
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.constraint = constraint
        self.ridge = ridge
        self.lasso = lasso


@described
class LinearSVC(_Classifier):
    """Two classes, separated by a margin."""

    _family = "svm"
    _links = (("svm", False),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        classes: Sequence[Any] | None = None,
        method: str = "auto",
        expand: str | None = None,
        steps: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
        constraint: str | None = None,
        ridge: float | None = None,
        lasso: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.classes = classes
        self.method = method
        self.expand = expand
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.constraint = constraint
        self.ridge = ridge
        self.lasso = lasso

    def _target_rule(self, y: Any) -> tuple[Any, list[str]]:
        labels, public = super()._target_rule(y)
        if len(labels) > 2:
            raise ParameterError(
                "Only binary classification is supported. The type of the target is multiclass: "
                "a support vector machine separates two classes; take LogisticRegression for more"
            )
        return labels, public

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@described
class KANClassifier(_Probable):
    """Classes, by a Kolmogorov-Arnold network."""

    _family = "kan"
    _links = (("logistic", True), ("softmax", True))

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        classes: Sequence[Any] | None = None,
        hidden_layer_sizes: Sequence[int] | None = None,
        spline_basis: int | None = None,
        spline_degree: int | None = None,
        last_layer: str | None = None,
        sampler: str | None = None,
        batches_per_epoch: int | None = None,
        epochs: int | None = None,
        noise_correlation: str | None = None,
        clipping_norm: float | str | None = None,
        momentum: float | None = None,
        average: str | None = None,
        network_seed: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.classes = classes
        self.hidden_layer_sizes = hidden_layer_sizes
        self.spline_basis = spline_basis
        self.spline_degree = spline_degree
        self.last_layer = last_layer
        self.sampler = sampler
        self.batches_per_epoch = batches_per_epoch
        self.epochs = epochs
        self.noise_correlation = noise_correlation
        self.clipping_norm = clipping_norm
        self.momentum = momentum
        self.average = average
        self.network_seed = network_seed
        self.step_size = step_size
        self.radius = radius


@described
class KANRegressor(_Regressor):
    """A number, by a Kolmogorov-Arnold network."""

    _family = "kan"
    _links = (("robust", True),)

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        schema: Schema | None = None,
        rows: int | None = None,
        target: str | None = None,
        neighbours: str = "add-remove",
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        public_steps: bool = False,
        target_range: tuple[float, float] | None = None,
        hidden_layer_sizes: Sequence[int] | None = None,
        spline_basis: int | None = None,
        spline_degree: int | None = None,
        last_layer: str | None = None,
        sampler: str | None = None,
        batches_per_epoch: int | None = None,
        epochs: int | None = None,
        noise_correlation: str | None = None,
        clipping_norm: float | str | None = None,
        momentum: float | None = None,
        average: str | None = None,
        network_seed: int | None = None,
        step_size: float | None = None,
        radius: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.rows = rows
        self.target = target
        self.neighbours = neighbours
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.public_steps = public_steps
        self.target_range = target_range
        self.hidden_layer_sizes = hidden_layer_sizes
        self.spline_basis = spline_basis
        self.spline_degree = spline_degree
        self.last_layer = last_layer
        self.sampler = sampler
        self.batches_per_epoch = batches_per_epoch
        self.epochs = epochs
        self.noise_correlation = noise_correlation
        self.clipping_norm = clipping_norm
        self.momentum = momentum
        self.average = average
        self.network_seed = network_seed
        self.step_size = step_size
        self.radius = radius
