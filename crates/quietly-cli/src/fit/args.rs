//! The flags of `fit` and `plan`, made of the parameters that models declare.
use std::{path::PathBuf, sync::LazyLock};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, ValueEnum, builder::PossibleValue};
use quietly::{
    Budget, Encoding, Family, Link, Method, ModelSpec, PARAMETERS, ParameterGroup, ParameterInfo,
    ParameterKind, ParameterValue, Plan, Schema,
};

use crate::{
    error::Failure,
    parse::{Count, Number},
    tables::{BudgetArgs, Columns},
};

/// What can be fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Model(pub(crate) Family);

impl Model {
    /// The words of all of them.
    pub(crate) fn list() -> String {
        let named = Family::ALL.into_iter().filter(|family| *family != Family::Auto);
        let names: Vec<&str> = named.map(Family::name).collect();
        format!("{}, or auto: chosen from public information", names.join(", "))
    }

    /// The word on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }
}

impl ValueEnum for Model {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Model>> =
            LazyLock::new(|| Family::ALL.into_iter().map(Model).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.0.help()))
    }
}

/// What methods can be compared and audited on.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// The target is a weighted sum of the features
    Linear,
    /// The target is a weighted sum of the features, or 0 where that is negative
    Relu,
}

impl Kind {
    pub(crate) fn link(self) -> Link {
        match self {
            Kind::Linear => Link::Linear,
            Kind::Relu => Link::Relu,
        }
    }
}

/// The parameters of a model, as they are typed.
#[derive(Debug, Default)]
pub(crate) struct Parameters(Vec<(&'static ParameterInfo, Typed)>);

/// A value that was typed: whether it makes sense is the library's to say.
#[derive(Clone, Debug)]
enum Typed {
    Number(Number),
    Count(Count),
    Word(String),
}

impl Typed {
    fn shown(&self) -> String {
        match self {
            Typed::Number(number) => number.0.to_string(),
            Typed::Count(count) => count.shown().to_string(),
            Typed::Word(word) => word.clone(),
        }
    }
}

/// The flags of all parameters, without their dashes.
static FLAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| PARAMETERS.iter().map(|info| info.name.replace('_', "-")).collect());

/// The flag of a parameter, without its dashes; other names stay as they are.
pub(crate) fn flag(name: &str) -> &str {
    let place = PARAMETERS.iter().position(|info| info.name == name);
    place.map_or(name, |place| &FLAGS[place])
}

/// Help with flags in place of the names of parameters.
fn help(info: &ParameterInfo) -> String {
    PARAMETERS.iter().fold(info.help.trim().to_string(), |help, other| {
        help.replace(&format!("`{}`", other.name), &format!("--{}", flag(other.name)))
    })
}

/// Parameters that are shown by `-h`; `--help` shows all.
const COMMON: [&str; 3] = ["method", "expand", "constraint"];

impl Args for Parameters {
    fn augment_args(command: Command) -> Command {
        PARAMETERS.iter().zip(&*FLAGS).fold(command, |command, (info, flag)| {
            let mut arg = Arg::new(info.name).long(flag.as_str()).value_name(info.value);
            arg = arg.help(help(info)).hide_short_help(!COMMON.contains(&info.name));
            if info.group == ParameterGroup::Network {
                arg = arg.help_heading("Networks (fit kan)");
            }
            command.arg(match info.kind {
                ParameterKind::Number => arg.value_parser(str::parse::<Number>),
                ParameterKind::Count => arg.value_parser(str::parse::<Count>),
                ParameterKind::Counts | ParameterKind::Word => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |info: &'static ParameterInfo| {
            let name = info.name;
            let value = match info.kind {
                ParameterKind::Number => matches.get_one(name).copied().map(Typed::Number),
                ParameterKind::Count => matches.get_one(name).copied().map(Typed::Count),
                _ => matches.get_one::<String>(name).cloned().map(Typed::Word),
            };
            value.map(|value| (info, value))
        };
        Ok(Parameters(PARAMETERS.iter().filter_map(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Parameters {
    fn word(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(info, value)| match value {
            Typed::Word(word) if info.name == name => Some(word.as_str()),
            _ => None,
        })
    }

    /// The flags of some parameters, to be typed again.
    fn typed(&self, these: impl Fn(ParameterGroup) -> bool) -> String {
        let given = self.0.iter().filter(|(info, _)| these(info.group));
        given.map(|(info, value)| format!(" --{} {}", flag(info.name), value.shown())).collect()
    }

    /// Gives them to a spec.
    fn apply(&self, spec: &mut ModelSpec) -> Result<(), Failure> {
        for (info, value) in &self.0 {
            let value = match (value, info.kind) {
                (Typed::Number(number), _) => ParameterValue::Number(number.0),
                (Typed::Count(count), _) => ParameterValue::Count(count.get(info.name)?),
                (Typed::Word(word), ParameterKind::Counts) => {
                    let count = |part: &str| part.trim().parse::<usize>().ok();
                    let counts: Option<Vec<usize>> = word.split(',').map(count).collect();
                    let (flag, typed) = (format!("--{}", flag(info.name)), word.clone());
                    let wanted = "whole numbers, such as 32 or 32,16".into();
                    let unreadable = Failure::Unreadable { flag, typed, wanted };
                    ParameterValue::Counts(counts.ok_or(unreadable)?)
                }
                (Typed::Word(word), _) => ParameterValue::Word(word.clone()),
            };
            spec.set(info.name, value)?;
        }
        Ok(())
    }
}

/// What is to be learnt, how, and within which budget.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    pub(crate) columns: Columns,
    #[command(flatten)]
    pub(crate) spending: BudgetArgs,
    #[command(flatten)]
    parameters: Parameters,
    /// A public table of the same columns to take clipping norms from: for dp-glmtron,
    /// dp-mbglmtron and their DP-SGD twins
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) public: Option<PathBuf>,
}

impl ModelArgs {
    /// The flags, to be typed again.
    pub(crate) fn typed(&self) -> String {
        let mut flags = format!("{}{}", self.columns.typed(), self.spending.typed());
        if let Some(public) = &self.public {
            flags += &format!(" --public {}", public.display());
        }
        flags + &self.parameters.typed(|_| true)
    }

    /// The plan; `steps` is how many a table was partitioned for, and `usual` the delta where none is typed.
    pub(crate) fn plan(
        &self,
        model: Model,
        schema: &Schema,
        encoding: &Encoding,
        steps: Option<u64>,
        usual: Option<f64>,
    ) -> Result<Plan, Failure> {
        let name = self.parameters.word("method").unwrap_or("auto");
        method(name)?;
        let mut spec = ModelSpec::new(model.0);
        // What the target makes of it: flags are those of that model.
        let named = model.0.of_target(encoding);
        if named == Family::Kan {
            let others = self.not_of_networks();
            if !others.is_empty() {
                return Err(foreign(&others, "other models", "fit kan"));
            }
        } else {
            let network = self.parameters.typed(|group| group == ParameterGroup::Network);
            if !network.is_empty() {
                let here = format!("fit {}", spec.family.name());
                return Err(foreign(&network, "fit kan", &here));
            }
        }
        self.parameters.apply(&mut spec)?;
        let regression = matches!(named, Family::Linear | Family::Relu);
        if let (Some(steps), true, "auto" | "one-pass") = (steps, regression, name) {
            // That is what it was partitioned for.
            spec.method = Some("one-pass".into());
            spec.steps = spec.steps.or(Some(steps));
        }
        spec.public_rows = self.public.is_some();
        Ok(spec.plan(encoding, schema.rows, self.budget(schema, usual)?)?)
    }

    /// What may be spent on a unit; `usual` is the delta where none is typed.
    fn budget(&self, schema: &Schema, usual: Option<f64>) -> Result<Budget, Failure> {
        Ok(self.spending.budget(schema.rows, usual)?.for_units_of(schema.rows_per_unit)?)
    }

    /// Flags that networks do not have.
    fn not_of_networks(&self) -> String {
        let public = self.public.as_ref().map(|file| format!(" --public {}", file.display()));
        let has = |group| matches!(group, ParameterGroup::Every | ParameterGroup::Network);
        let others = self.parameters.0.iter().filter(|(info, value)| {
            !(has(info.group) || info.name == "method" && value.shown() == "auto")
        });
        let others = others.map(|(info, v)| format!(" --{} {}", flag(info.name), v.shown()));
        others.chain(public).collect()
    }
}

/// Flags that another model has, with their values.
fn foreign(flags: &str, whose: &str, here: &str) -> Failure {
    let names: Vec<&str> = flags.split_whitespace().filter(|word| word.starts_with("--")).collect();
    let (belong, them) = if names.len() == 1 { ("belongs", "it") } else { ("belong", "them") };
    let names = names.join(", ");
    Failure::Misplaced(format!("{names} {belong} to {whose}; leave {them} out for {here}"))
}

/// The method of this name.
pub(crate) fn method(name: &str) -> Result<Method, Failure> {
    Method::named(name).ok_or_else(|| Failure::NoSuchMethod(name.into()))
}
