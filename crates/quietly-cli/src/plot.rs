//! The privacy curve, drawn small.
use crate::format;

const COLUMNS: usize = 56;
const ROWS: usize = 8;

/// ε against δ on a logarithmic axis, as lines of text. `asked` is marked if it lies on the picture.
///
/// Dots stand for certified upper ends; the points between them are only there for the eye.
pub(crate) fn draw(curve: &[(f64, f64)], asked: (f64, f64)) -> String {
    let points: Vec<(f64, f64)> = curve.iter().copied().filter(|p| p.1.is_finite()).collect();
    let top = points.iter().map(|p| p.1).fold(0.0, f64::max);
    if points.len() < 2 || top <= 0.0 {
        let nothing = top == 0.0 && points.len() == curve.len();
        return format!("  epsilon is {} at every delta", if nothing { "0" } else { "infinite" });
    }
    let (first, last) = (points[0].0.log10(), points[points.len() - 1].0.log10());
    let column =
        |delta: f64| ((delta.log10() - first) / (last - first) * (COLUMNS - 1) as f64).round();
    let row = |epsilon: f64| ((1.0 - epsilon / top) * (ROWS - 1) as f64).round() as usize;
    let mut grid = vec![vec![' '; COLUMNS]; ROWS];
    for pair in points.windows(2) {
        let (from, to) = (column(pair[0].0) as usize, column(pair[1].0) as usize);
        for x in from..=to {
            let share = (x - from) as f64 / (to - from).max(1) as f64;
            let cells = &mut grid[row(pair[0].1 + share * (pair[1].1 - pair[0].1))];
            cells[x] = '·';
        }
    }
    for &(delta, epsilon) in &points {
        grid[row(epsilon)][column(delta) as usize] = '•';
    }
    let x = column(asked.0);
    if (0.0..COLUMNS as f64).contains(&x) && (0.0..=top).contains(&asked.1) {
        grid[row(asked.1)][x as usize] = '◆';
    }
    let mut lines = vec!["  epsilon".to_string()];
    for (i, cells) in grid.iter().enumerate() {
        let label = match i {
            0 => format::high(top),
            i if i == ROWS - 1 => "0".into(),
            _ => String::new(),
        };
        let line: String = cells.iter().collect();
        lines.push(format!("{label:>9} │{}", line.trim_end()).trim_end().to_string());
    }
    lines.push(format!("{:>9} └{}", "", "─".repeat(COLUMNS)));
    let mut axis = vec![' '; COLUMNS + 8];
    let (least, most) = (points[0].0, points[points.len() - 1].0);
    for (at, label) in
        [(1e-12, "1e-12"), (1e-9, "1e-9"), (1e-6, "1e-6"), (1e-3, "1e-3"), (0.5, "0.5")]
    {
        if (least..=most).contains(&at) {
            let from = (column(at) as usize).saturating_sub(if at == least { 0 } else { 2 });
            label.chars().zip(&mut axis[from..]).for_each(|(c, cell)| *cell = c);
        }
    }
    let axis: String = axis.into_iter().collect();
    lines.push(format!("{:>11}{}  delta", "", axis.trim_end()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use quietly_accounting::{Event, Neighbours, curve};

    use super::*;

    #[test]
    fn a_curve_falls_and_marks_the_question() {
        let event = Event::gaussian(1.0).unwrap();
        let curve = curve(&event, Neighbours::AddRemove).unwrap();
        let picture = draw(&curve, *curve.iter().find(|p| p.0 == 1e-6).unwrap());
        assert!(picture.lines().all(|l| l.chars().count() <= 80), "{picture}");
        assert_eq!(picture.matches('◆').count(), 1, "{picture}");
        assert!(picture.matches('•').count() >= 11, "{picture}");
        let start = |line: &str| line.chars().position(|c| c == '•' || c == '·');
        let marks: Vec<usize> = picture.lines().skip(1).take(ROWS).filter_map(start).collect();
        assert!(marks.windows(2).all(|w| w[0] <= w[1]), "{picture}");
        assert!(marks[0] < *marks.last().unwrap(), "{picture}");
    }

    #[test]
    fn a_curve_without_finite_points_says_so() {
        let event = Event::gaussian(1.0).unwrap();
        let mut curve = curve(&event, Neighbours::AddRemove).unwrap();
        curve.iter_mut().for_each(|p| p.1 = f64::INFINITY);
        assert!(draw(&curve, (1e-5, f64::INFINITY)).contains("infinite"));
        curve.iter_mut().for_each(|p| p.1 = 0.0);
        assert!(draw(&curve, (1e-5, 0.0)).contains("epsilon is 0"));
    }
}
