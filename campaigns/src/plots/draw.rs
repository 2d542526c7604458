//! Curves as SVG.

use plotters::prelude::*;

use super::figures::{Figure, Panel};
use crate::Result;

/// Pixels.
const SIZE: (u32, u32) = (860, 290);

/// How much higher than its curves a panel is: names stand above them.
const LEGEND_ROOM: f64 = 1.5;

/// Colours that people who see few can tell apart (Okabe and Ito), and that differ in lightness.
const COLOURS: [RGBColor; 3] = [RGBColor(110, 110, 110), RGBColor(0, 114, 178), RGBColor(213, 94, 0)];

/// A line and its name.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) label: &'static str,
    /// Seconds, and the figure's quantity.
    pub(super) points: Vec<(f64, f64)>,
}

/// The panels side by side.
pub(super) fn svg(figure: &Figure, panels: &[(&Panel, Vec<Curve>)]) -> Result<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        for (area, (panel, curves)) in area.split_evenly((1, panels.len())).iter().zip(panels) {
            let most = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
            let mut chart = ChartBuilder::on(area)
                .caption(panel.title, ("sans-serif", 14))
                .margin(8)
                .x_label_area_size(34)
                .y_label_area_size(52)
                .build_cartesian_2d(0.0..panel.seconds, 0.0..most * LEGEND_ROOM)?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .light_line_style(TRANSPARENT)
                .x_desc("seconds")
                .y_desc(figure.quantity.label())
                .x_label_formatter(&|value| format!("{value}"))
                .y_label_formatter(&|value| format!("{value}"))
                .draw()?;
            for (curve, colour) in curves.iter().zip(COLOURS) {
                let style = colour.stroke_width(2);
                chart
                    .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
                    .label(curve.label)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.8))
                .draw()?;
        }
        area.present()?;
    }
    Ok(text)
}
