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

/// The places of the first path of a class: where it begins, then differences.
#[track_caller]
fn places(svg: &str, class: &str) -> Vec<(f64, f64)> {
    let (_, path) = svg.split_once(&format!("class=\"{class}\" d=\"M")).expect("a path");
    let (path, _) = path.split_once('"').expect("an end");
    let spaced = path.replace('l', " ").replace('-', " -");
    let numbers: Vec<f64> = spaced.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    let mut at = (0.0, 0.0);
    let place = |pair: &[f64]| {
        at = (at.0 + pair[0], at.1 + pair[1]);
        at
    };
    numbers.chunks(2).map(place).collect()
}

fn series(values: &[f64]) -> Series {
    Series { name: "a<b & \"c\"".to_owned(), colour: 1, values: values.to_vec() }
}

#[test]
fn figures_are_well_formed_whatever_they_are_fed() {
    for values in [&[][..], &[0.0], &[5.0, 5.0], &[0.001, 1e9], &[f64::MAX / 1e300]] {
        check_well_formed(&ecdf("milliseconds", &[series(values), series(values)]));
        check_well_formed(&strips(&Axis::linear("milliseconds"), &[series(values)]));
        let row = |value: &f64| BoxRow {
            name: "a<b".to_owned(),
            colour: 2,
            whiskers: (*value, 2.0 * value),
            quartiles: (1.2 * value, 1.8 * value),
            median: 1.5 * value,
        };
        check_well_formed(&boxes(&Axis::micros("a & b"), &values.iter().map(row).collect::<Vec<_>>()));
        let points = values.iter().map(|value| (1.0, *value)).collect();
        let band = Band { from_s: 0.5, to_s: 1.5, name: "on & off".to_owned() };
        let trace = TimelineTrace {
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
    let heights: Vec<f64> = places(&svg, "curve c1").into_iter().map(|(_, y)| y).collect();
    assert!(heights.windows(2).all(|pair| pair[1] <= pair[0]), "{heights:?}");
    assert!((heights.last().expect("places") - 40.0).abs() < 1e-6, "the top of the figure: {heights:?}");
}

#[test]
fn every_run_has_its_dot() {
    let values: Vec<f64> = (0..50).map(|index| f64::from(index % 7) + 1.0).collect();
    assert_eq!(strips(&Axis::linear("ms"), &[series(&values)]).matches("<circle").count(), 50);
}

#[test]
fn long_series_are_thinned_to_a_bounded_picture() {
    let values: Vec<f64> = (1..100_000).map(f64::from).collect();
    assert!(ecdf("ms", &[series(&values)]).len() < 40_000);
    let dots = strips(&Axis::linear("ms"), &[series(&values)]).matches("<circle").count();
    assert!((1_000..3_000).contains(&dots), "{dots} dots");
    let same = strips(&Axis::linear("ms"), &[series(&[2.0; 10_000])]).matches("<circle").count();
    assert_eq!(same, 11, "one at each height");
}

#[test]
fn a_figure_of_its_own_brings_its_colours() {
    let svg = standalone(&strips(&Axis::linear("ms"), &[series(&[1.0, 2.0])]));
    assert!(svg.starts_with("<svg xmlns=") && svg.contains(".dot.c1"), "{svg}");
    check_well_formed(&svg);
}

#[test]
fn stacked_bars_fill_the_row_and_show_every_class_that_occurred() {
    let row = |name: &str, counts: &[u64], interval| Stack { name: name.to_owned(), counts: counts.to_vec(), interval };
    let rows = [row("a", &[999_999, 1, 0], Some((99.0, 100.0))), row("b & c", &[0, 0, 0], None)];
    let svg = stacks("share", &[("in time", 2), ("late", 4), ("lost", 1)], &rows);
    assert_eq!(svg.matches("class=\"interval\"").count(), 1);
    check_well_formed(&svg);
    // Two classes of the first row and three entries of the legend.
    assert_eq!(svg.matches("<rect").count(), 5, "{svg}");
    assert!(svg.contains("100 %") && svg.contains("b &amp; c"));
}

fn chart(size: Size, form: Form, values: &[f64]) -> Chart {
    let layer = Layer {
        name: "a < b".to_owned(),
        colour: 2,
        form,
        points: values.iter().enumerate().map(|(index, value)| (index as f64 + 1.0, *value)).collect(),
        band: values.iter().enumerate().map(|(index, value)| (index as f64 + 1.0, value / 2.0, value * 2.0)).collect(),
    };
    let layers = vec![layer.clone(), Layer { name: "c".repeat(90), colour: 1, ..layer }];
    Chart { title: "x & y".to_owned(), x: Axis::nines("p"), y: Axis::micros("t"), layers, size }
}

#[test]
fn charts_rows_grids_and_ladders_are_well_formed_whatever_they_are_fed() {
    for values in [&[][..], &[0.0], &[5.0, 5.0], &[0.001, 1e9]] {
        for form in [Form::Line, Form::Marked, Form::Dots] {
            for size in [Size::Wide, Size::Strip, Size::Small] {
                check_well_formed(&chart(size, form, values).to_svg());
            }
        }
        let mark = |(index, value): (usize, &f64)| RowMark {
            colour: index,
            value: *value,
            interval: Some((0.5 * value, *value)),
        };
        let marks = values.iter().enumerate().map(mark).collect();
        let row = PlotRow { name: "a & b".to_owned(), note: "<1".to_owned(), marks };
        check_well_formed(&rows(&Axis::micros("t"), &[("p50 & more", 0)], &[row.clone(), row]));
    }
    check_well_formed(&grid("a & b", &["not sent", "x"], &[("c < d".to_owned(), vec![0, u64::MAX])]));
    check_well_formed(&grid("none", &[], &[]));
    let stage = |passed, lost| Stage { name: "a & b".to_owned(), passed, unit: "samples", lost };
    check_well_formed(&ladder("a & b", &[stage(Some(5), 1), stage(None, 0), stage(Some(0), u64::MAX / 4)]));
}

/// The bytes of one small chart: whoever changes them looks at the pictures again.
#[test]
fn a_small_chart_is_drawn_as_it_was() {
    let layer = Layer {
        name: String::new(),
        colour: 0,
        form: Form::Line,
        points: vec![(10.0, 0.0), (100.0, 50.0), (1_000.0, 100.0)],
        band: vec![(10.0, 0.0, 20.0), (1_000.0, 90.0, 100.0)],
    };
    let chart = Chart {
        title: "t".to_owned(),
        x: Axis::micros("x"),
        y: Axis::percent("y"),
        layers: vec![layer],
        size: Size::Small,
    };
    assert_eq!(chart.to_svg(), include_str!("small.svg"));
}

#[test]
fn a_line_lies_where_its_values_are() {
    let layer = Layer::new("", 3, Form::Line, vec![(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)]);
    let chart = Chart {
        title: String::new(),
        x: Axis::linear("x"),
        y: Axis::percent("y"),
        layers: vec![layer],
        size: Size::Wide,
    };
    let svg = chart.to_svg();
    let places = places(&svg, "curve c3");
    let (first, middle, last) = (places[0], places[1], places[2]);
    assert!(first.0 < middle.0 && middle.0 < last.0 && first.1 > middle.1 && middle.1 > last.1, "{places:?}");
    assert!((middle.0 - (first.0 + last.0) / 2.0).abs() < 0.2 && (middle.1 - (first.1 + last.1) / 2.0).abs() < 0.2);
    // What a script reads at the ends of the axis is what the axis says.
    assert!(svg.contains("data-x=\"l 0 10 58 748 n\"") && svg.contains(" 284 24 p\""), "{svg}");
}

#[test]
fn a_layer_that_lost_something_shows_how_much() {
    let stage = |passed, lost| Stage { name: "socket".to_owned(), passed, unit: "datagrams", lost };
    let svg = ladder("x", &[stage(Some(1_000), 0), stage(Some(900), 100)]);
    assert_eq!(svg.matches("class=\"loss\"").count(), 1);
    assert!(svg.contains("100 datagrams lost here") && svg.contains("900 datagrams"), "{svg}");
    let svg = grid("x", &["a", "b"], &[("cell".to_owned(), vec![0, 12_345])]);
    assert!(svg.contains("loss d4") && svg.contains("12,345") && svg.matches("<rect").count() == 1, "{svg}");
}
