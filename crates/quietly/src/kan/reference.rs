//! The same network in double precision, dense and slow, to compare with.
