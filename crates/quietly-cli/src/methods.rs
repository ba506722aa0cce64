//! `quietly methods`: every way to fit, what it assumes, why it is private, and when to take it.
use clap::Args;
use quietly::{Link, Method};
use serde_json::json;

use crate::{
    error::Failure,
    fit, format,
    terminal::{Screen, WIDTH},
};

#[derive(Args, Debug)]
pub(crate) struct Methods {
    /// One method, with its source
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the methods, or tells about one.
pub(crate) fn run(asked: &Methods, screen: &mut Screen) -> Result<(), Failure> {
    let one = asked.name.as_deref().map(fit::method).transpose()?;
    let chosen: Vec<Method> = one.map_or(Method::ALL.to_vec(), |m| vec![m]);
    if asked.json {
        let all: Vec<_> =
            chosen.iter().map(|m| serde_json::to_value(m.about()).expect("plain fields")).collect();
        return Ok(screen.say_json(&json!({ "methods": all }))?);
    }
    for method in chosen {
        let about = method.about();
        let links: Vec<&str> = about.links.iter().map(|l: &Link| l.name()).collect();
        screen.say(&screen.bold(&format!("{} ({})", about.name, links.join(", "))))?;
        let mut lines = vec![
            ("         ", about.what),
            ("assumes  ", about.assumes),
            ("private  ", about.guarantee),
            ("use it   ", about.when),
        ];
        if one.is_some() {
            lines.push(("from     ", about.from));
        }
        for (head, text) in lines {
            let text = format::wrap(text, "           ", WIDTH);
            screen.say(&format!("  {head}{}", &text[2 + head.len()..]))?;
        }
    }
    let next = if one.is_some() {
        "quietly methods lists all"
    } else {
        "quietly methods NAME shows its source"
    };
    Ok(screen.say(&format!("\n{next}; quietly fit ... --method NAME uses it"))?)
}
