//! The ways to fit a model, by name.
use quietly_engine::link::Link;
use serde::Serialize;

pub use self::table::Method;

mod table;

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

impl Method {
    /// Whether it cannot do without public rows.
    pub fn wants_public_rows(self) -> bool {
        matches!(self, Method::DpGlmtron | Method::DpSgdOneRow)
    }

    /// The method of this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| m.name() == name)
    }

    /// The method of an algorithm that another crate names.
    pub(crate) fn of(name: &str) -> Method {
        Method::named(name).expect("algorithms of papers have an entry in method/table.rs")
    }

    /// Whether it fits convex losses, and not squares alone.
    pub fn is_convex(self) -> bool {
        self.about().links.contains(&Link::Logistic)
    }

    /// Its name and what it fits: `dp-glmtron, which fits relu`.
    pub(crate) fn and_its_models(self) -> String {
        let links: Vec<&str> = self.about().links.iter().map(|link| link.name()).collect();
        format!("{}, which fits {}", self.name(), links.join(", "))
    }

    /// The word used on the command line and in files.
    pub fn name(self) -> &'static str {
        self.about().name
    }
}

#[cfg(test)]
mod tests {
    use quietly_glm::Localisation;
    use quietly_linear::papers::Paper;

    use super::*;

    #[test]
    fn names_are_the_ones_in_files() {
        for method in Method::ALL {
            assert_eq!(serde_json::to_value(method).unwrap(), method.name());
            assert_eq!(Method::named(method.name()), Some(method));
        }
    }

    #[test]
    fn algorithms_of_papers_have_the_same_name_here() {
        for paper in Paper::ALL {
            assert_eq!(serde_json::to_value(paper).unwrap(), Method::of(paper.name()).name());
        }
        for phased in Localisation::ALL {
            let file = serde_json::to_value(phased).unwrap();
            assert_eq!(file["method"], Method::of(phased.name()).name());
        }
    }
}
