use super::*;

/// Checks that every opened element is closed in order; good enough for the flat pictures drawn here.
#[track_caller]
fn check_well_formed(svg: &str) {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("every tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().expect("a name"));
        }
    }
    assert!(open.is_empty(), "{open:?} left open");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "impossible coordinate in {svg}");
}

fn series(values: &[f64]) -> Series {
    Series { name: "a<b & \"c\"".to_owned(), colour: 1, values: values.to_vec() }
}

#[test]
fn figures_are_well_formed_whatever_they_are_fed() {
    for values in [&[][..], &[0.0], &[5.0, 5.0], &[0.001, 1e9], &[f64::MAX / 1e300]] {
        check_well_formed(&ecdf("milliseconds", &[series(values), series(values)]));
        check_well_formed(&strips("milliseconds", &[series(values)]));
        let points = values.iter().map(|value| (1.0, *value)).collect();
        let band = Band { from_s: 0.5, to_s: 1.5, name: "on & off".to_owned() };
        let trace = Trace {
            name: "x & a name so long that two do not fit into one line of the legend".to_owned(),
            colour: 0,
            points,
        };
        for axis in [Axis::linear("a<b"), Axis::logarithmic("a & b")] {
            check_well_formed(&lines(&axis, &axis, &[trace.clone(), trace.clone()]));
        }
        check_well_formed(&timeline("µs", &[trace], &[band]));
    }
}

#[test]
fn a_distribution_ends_at_one_hundred_percent_and_never_falls() {
    let svg = ecdf("ms", &[series(&[3.0, 1.0, 2.0])]);
    let path = svg.split(" d=\"M").nth(1).and_then(|rest| rest.split('"').next()).expect("a curve");
    let heights: Vec<f64> =
        path.split('L').map(|point| point.split(' ').nth(1).expect("y").parse().expect("number")).collect();
    assert!(heights.windows(2).all(|pair| pair[1] <= pair[0]), "{heights:?}");
    assert_eq!(heights.last(), Some(&40.0), "the top of the figure");
}

#[test]
fn every_run_has_its_dot() {
    let values: Vec<f64> = (0..50).map(|index| f64::from(index % 7) + 1.0).collect();
    assert_eq!(strips("ms", &[series(&values)]).matches("<circle").count(), 50);
}

#[test]
fn long_series_are_thinned_to_a_bounded_picture() {
    let values: Vec<f64> = (1..100_000).map(f64::from).collect();
    assert!(ecdf("ms", &[series(&values)]).len() < 40_000);
}

#[test]
fn a_figure_of_its_own_brings_its_colours() {
    let svg = standalone(&strips("ms", &[series(&[1.0, 2.0])]));
    assert!(svg.starts_with("<svg xmlns=") && svg.contains(".dot.c1"), "{svg}");
    check_well_formed(&svg);
}

#[test]
fn stacked_bars_fill_the_row_and_show_every_class_that_occurred() {
    let rows = [("a".to_owned(), vec![999_999, 1, 0]), ("b & c".to_owned(), vec![0, 0, 0])];
    let svg = stacks("share", &[("in time", 2), ("late", 4), ("lost", 1)], &rows);
    check_well_formed(&svg);
    // Two classes of the first row and three entries of the legend.
    assert_eq!(svg.matches("<rect").count(), 5, "{svg}");
    assert!(svg.contains("100 %") && svg.contains("b &amp; c"));
}
