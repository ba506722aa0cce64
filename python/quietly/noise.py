"""Exact noise on the integers: no floating point lies between the random bits and the draws.

Without ``random_state`` the bits are the operating system's; with it the draws are for tests only.
"""

from ._quietly import discrete_laplace, rounded_gaussian

__all__ = ["discrete_laplace", "rounded_gaussian"]
