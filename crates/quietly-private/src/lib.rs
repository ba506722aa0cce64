//! [`Private`]: a value that depends on private data. Nothing else is in this crate.
//!
//! It can be worked on ([`map`](Private::map), [`as_ref`](Private::as_ref)), and the result is
//! private again. It cannot be printed, compared, cloned or serialised.
//!
//! ```
//! use quietly_private::Private;
//!
//! let salary = Private::new(4711);
//! let raised = salary.map(|salary| salary + 1);
//! assert_eq!(format!("{raised:?}"), "Private(..)");
//! ```
//!
//! # What is promised
//!
//! The crate has no dependency, so no trait of another crate is implemented for `Private`: Rust
//! allows such an implementation only here or in the crate of the trait. A value comes out in two
//! ways, both hidden from the documentation. `declassify` belongs to the file that adds noise.
//! `sent_to_driver` belongs to workers that send their sums to the process that adds noise. A test
//! of the `quietly` crate lists all their callers in the workspace.
use std::fmt;

/// A value that depends on private data.
///
/// It cannot be printed,
///
/// ```compile_fail,E0277
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// println!("{salary}");
/// ```
///
/// compared,
///
/// ```compile_fail,E0369
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// let rich = salary == Private::new(1_000_000);
/// ```
///
/// ordered,
///
/// ```compile_fail,E0369
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// let rich = salary > Private::new(1_000_000);
/// ```
///
/// cloned,
///
/// ```compile_fail,E0599
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// let copy = salary.clone();
/// ```
///
/// hashed,
///
/// ```compile_fail,E0277
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// let set = std::collections::HashSet::from([salary]);
/// ```
///
/// or opened.
///
/// ```compile_fail,E0616
/// # use quietly_private::Private;
/// # let salary = Private::new(4711);
/// let bare: i32 = salary.0;
/// ```
#[must_use = "a private value is of no use until a mechanism releases something about it"]
pub struct Private<T>(T);

impl<T> Private<T> {
    /// Marks a value as private.
    pub fn new(value: T) -> Self {
        Private(value)
    }

    /// Applies a function to the value. The result is private again.
    pub fn map<U>(self, work: impl FnOnce(T) -> U) -> Private<U> {
        Private(work(self.0))
    }

    /// A private reference to the value.
    pub fn as_ref(&self) -> Private<&T> {
        Private(&self.0)
    }

    /// A private mutable reference to the value.
    pub fn as_mut(&mut self) -> Private<&mut T> {
        Private(&mut self.0)
    }

    /// Two private values as one.
    pub fn zip<U>(self, other: Private<U>) -> Private<(T, U)> {
        Private((self.0, other.0))
    }

    /// The bare value. Only the file that adds noise may call this: a test lists the callers.
    #[doc(hidden)]
    pub fn declassify(self) -> T {
        self.0
    }

    /// The bare value, to be sent from a worker to the process that adds noise. It is as
    /// confidential as the rows: the connection and both of its ends are inside the trust boundary.
    /// A test lists the callers.
    #[doc(hidden)]
    pub fn sent_to_driver(self) -> T {
        self.0
    }
}

impl<T, U> Private<(T, U)> {
    /// Two private values from one.
    pub fn split(self) -> (Private<T>, Private<U>) {
        (Private(self.0.0), Private(self.0.1))
    }
}

impl<T, E> Private<Result<T, E>> {
    /// The value, or a failure that does not depend on the data, such as one of a disk.
    ///
    /// # Errors
    ///
    /// The failure, which is public from here on.
    pub fn transpose(self) -> Result<Private<T>, E> {
        self.0.map(Private)
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Private::new(vec![4711])), "Private(..)");
    }
}
