"""Exact noise on the integers: no floating point lies between the random bits and the draws.

>>> from quietly import noise
>>> sum(noise.rounded_gaussian(1000.0, 5)) != sum(noise.rounded_gaussian(1000.0, 5))
True

``rounded_gaussian(scale, size)`` is a Gaussian of standard deviation ``scale``, each draw rounded to the nearest integer: the law is
that of the real Gaussian, exactly, so that its accounting holds (a release of integers plus it is post-processing of the Gaussian
mechanism). ``discrete_laplace(numerator, denominator, size)`` has P(x) in proportion to exp(-\\|x\\| denominator / numerator).

Without ``random_state`` the bits are the operating system's. With it the draws are *for tests only*: anyone who knows the number knows the
noise.

>>> noise.discrete_laplace(3, 1, 4, random_state=7) == noise.discrete_laplace(3, 1, 4, random_state=7)
True
"""

from ._quietly import discrete_laplace, rounded_gaussian

__all__ = ["discrete_laplace", "rounded_gaussian"]
