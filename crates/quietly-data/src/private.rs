use std::fmt;

/// A value that depends on somebody's data.
///
/// It can be worked on ([`map`](Self::map), [`as_ref`](Self::as_ref)) and stays private. It cannot
/// be printed, compared, serialised or cloned. The way out, [`declassify`](Self::declassify),
/// belongs to the release door of the `quietly` crate, which adds the noise. A worker on another
/// machine sends its sums to that door by [`sent_to_driver`](Self::sent_to_driver).
///
/// ```
/// use quietly_data::Private;
///
/// let salary = Private::new(4711);
/// assert_eq!(format!("{salary:?}"), "Private(..)");
/// # let _ = salary.map(|s| s + 1);
/// ```
///
/// It cannot be printed,
///
/// ```compile_fail,E0277
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// println!("{salary}");
/// ```
///
/// compared,
///
/// ```compile_fail,E0369
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// let rich = salary == Private::new(1_000_000);
/// ```
///
/// ordered,
///
/// ```compile_fail,E0369
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// let rich = salary > Private::new(1_000_000);
/// ```
///
/// cloned,
///
/// ```compile_fail,E0599
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// let copy = salary.clone();
/// ```
///
/// serialised,
///
/// ```compile_fail,E0277
/// # use quietly_data::Private;
/// # let salary = Private::new(4711);
/// fn written<T: serde::Serialize>(_: &T) {}
/// written(&salary);
/// ```
///
/// or opened.
///
/// ```compile_fail,E0616
/// # use quietly_data::Private;
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

    /// Works on the value; the result is private too.
    pub fn map<U>(self, work: impl FnOnce(T) -> U) -> Private<U> {
        Private(work(self.0))
    }

    /// A private look at a private value.
    pub fn as_ref(&self) -> Private<&T> {
        Private(&self.0)
    }

    /// A private hold on a private value.
    pub fn as_mut(&mut self) -> Private<&mut T> {
        Private(&mut self.0)
    }

    /// Two private values as one.
    pub fn zip<U>(self, other: Private<U>) -> Private<(T, U)> {
        Private((self.0, other.0))
    }

    /// Hands the bare value out. Only a mechanism that adds noise may call this.
    #[doc(hidden)]
    pub fn declassify(self) -> T {
        self.0
    }

    /// The bare value, for the wire between a worker and the process that adds noise. It stays as private as the rows: the wire and
    /// both of its ends belong to the trust boundary. A test lists the files that may call this.
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
    /// Whether something failed that has nothing to do with the data, such as a disk.
    ///
    /// # Errors
    ///
    /// The failure.
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
    fn debug_says_nothing() {
        assert_eq!(format!("{:?}", Private::new(vec![4711])), "Private(..)");
    }
}
