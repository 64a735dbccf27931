//! The chart: creates a second for each number of connections, as an SVG image.

use std::fmt::Write;

use crate::report::{Measured, Report};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 310.0;
const TOP: f64 = 50.0;
const SERIES: [(&str, &str); 3] = [("pgbench", "#8a949e"), ("intake, HTTPS", "#0f6b5c"), ("intake, plain", "#5cc4ae")];

pub(crate) fn draw(report: &Report) -> String {
    let values = |one: &Measured| [one.pgbench.creates, one.https.creates, one.plain.creates];
    let highest = report.measured.iter().flat_map(values).fold(1.0, f64::max);
    // Lines at round numbers, a handful of them.
    let magnitude = 10_f64.powf(highest.log10().floor());
    let step = if highest / magnitude < 2.0 { magnitude / 4.0 } else { magnitude };
    let top = (highest / step).ceil() * step;
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * value / top;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\
         <title>Durable creates a second by connections</title><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for line in 0.. {
        let value = step * f64::from(line);
        if value > top {
            break;
        }
        let y = y(value);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{WIDTH}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    let group = (WIDTH - LEFT) / report.measured.len() as f64;
    let bar = group * 0.26;
    for (index, one) in report.measured.iter().enumerate() {
        let left = LEFT + group * index as f64 + group * 0.11;
        for (series, (value, (_, colour))) in values(one).into_iter().zip(SERIES).enumerate() {
            let (x, y) = (left + bar * series as f64, y(value));
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"><title>{value:.0}</title></rect>",
                bar - 2.0,
                BOTTOM - y
            );
        }
        let middle = left + bar * 1.5;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 18.0,
            one.connections
        );
    }
    add_legend(&mut svg);
    svg + "</svg>\n"
}

fn add_legend(svg: &mut String) {
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">connections</text>", BOTTOM + 38.0);
    for (index, (name, colour)) in SERIES.iter().enumerate() {
        let x = LEFT + 150.0 * index as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"18\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"29\">{name}</text>",
            x + 18.0
        );
    }
}
