use super::*;

/// Aᵀ·A less a multiple of the identity: definite for none, otherwise not.
fn matrix(less: f64) -> Square {
    let a = Square::new(7, |i, j| ((i * 5 + j * 3) as f64).sin() + f64::from(u8::from(i == j)));
    let mut product = a.transposed().times(&a);
    (0..7).for_each(|k| product.entries[k * 8] -= less);
    product
}

fn near(a: &Square, b: &Square) -> bool {
    a.entries.iter().zip(&b.entries).all(|(a, b)| (a - b).abs() < 1e-9)
}

#[test]
fn an_inverse_is_one() {
    let definite = matrix(0.0);
    assert!(near(&inverse(&definite).unwrap().times(&definite), &Square::identity(7)));
    assert_eq!(inverse(&matrix(1.0)), None);
    let odd = Square { size: 1, entries: vec![f64::NAN] };
    assert_eq!(inverse(&odd), None);
}

#[test]
fn a_turned_basis_is_half_zero_and_measures_alike() {
    let basis = Square::new(7, |i, j| ((i * 5 + j * j) as f64).sin());
    let along = Square::new(7, |i, j| ((i + 4 * j) as f64).cos());
    let (mut turned, mut back) = (basis.clone(), along.clone());
    turned.lower(7, Some(&mut back));
    assert!((0..7).all(|i| turned.row(i)[i + 1..].iter().all(|x| *x == 0.0)));
    assert!(near(&turned.times(&back), &basis.times(&along)));
    assert!(near(&turned.times(&turned.transposed()), &basis.times(&basis.transposed())));
    // It did turn, and turns no more.
    assert!(!near(&turned, &basis));
    let once = turned.clone();
    turned.lower(7, None);
    assert_eq!(turned, once);

    // The columns beyond are left alone.
    let mut some = basis.clone();
    some.lower(4, None);
    assert!((0..4).all(|i| some.row(i)[i + 1..4].iter().all(|x| *x == 0.0)));
    assert!((0..7).all(|i| some.row(i)[4..] == basis.row(i)[4..]));
    assert!(near(&some.times(&some.transposed()), &basis.times(&basis.transposed())));
}

#[test]
fn negative_eigenvalues_become_the_blur() {
    for (less, negative) in [(0.0, false), (1.0, true)] {
        let matrix = matrix(less);
        let (values, vectors) = eigen(&matrix.entries, 7);
        assert_eq!(values[0] < 0.0, negative);
        let vectors = Square { size: 7, entries: vectors };
        let wanted = |i: usize, j: usize| -> f64 {
            let part = |k: usize| vectors.at(k, i) * vectors.at(k, j);
            (0..7).map(|k| (values[k].max(0.0) + 0.1) * part(k)).sum()
        };
        assert!(near(&regular(&matrix, 0.1), &Square::new(7, wanted)));
    }
}

#[test]
fn eigenvectors_rebuild_the_matrix() {
    let upper = [4.0, 1.0, -2.0, 3.0, 0.5, 5.0];
    let matrix = Square::symmetric(3, &upper);
    let (values, vectors) = eigen(&matrix.entries, 3);
    assert!(values.is_sorted());
    let v = Square { size: 3, entries: vectors };
    let d = Square::new(3, |r, c| if r == c { values[r] } else { 0.0 });
    let back = v.transposed().times(&d).times(&v);
    let worst = back.entries.iter().zip(&matrix.entries).map(|(a, b)| (a - b).abs());
    assert!(worst.fold(0.0, f64::max) < 1e-12, "{back:?}");
}
