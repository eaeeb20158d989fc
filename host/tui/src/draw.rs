//! Draws a dashboard.

use crate::dashboard::{AgentRow, Dashboard};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, Gauge, GraphType, Paragraph, Row, Table};

const QUIET: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws the whole screen; the table of agents begins with `first_agent`.
pub(crate) fn screen(frame: &mut Frame<'_>, dashboard: &Dashboard, first_agent: usize, is_ending: bool) {
    let log_rows = 2 + dashboard.lines.len().clamp(1, 4) as u16;
    let [title, progress, numbers, middle, agents, log, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(log_rows),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Span::styled(dashboard.run.description.as_str(), STRONG), title);
    draw_progress(frame, dashboard, progress);
    frame.render_widget(numbers_line(dashboard), numbers);
    let [curve, frames] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(28)]).areas(middle);
    draw_curve(frame, dashboard, curve);
    draw_frames(frame, dashboard, frames);
    draw_agents(frame, dashboard, first_agent, agents);
    draw_log(frame, dashboard, log);
    let help = match (dashboard.has_ended, is_ending) {
        (true, _) => "the run has ended",
        (false, true) => "finishing this round and writing the run folder; q again exits at once",
        (false, false) => "↑ ↓ agents   q end the run and keep its results",
    };
    frame.render_widget(Span::styled(help, QUIET), keys);
}

fn draw_progress(frame: &mut Frame<'_>, dashboard: &Dashboard, area: Rect) {
    let most = dashboard.run.rounds.max(1);
    let share = (dashboard.round as f64 / most as f64).clamp(0.0, 1.0);
    let label = format!("round {} of at most {most}", dashboard.round);
    frame.render_widget(Gauge::default().ratio(share).label(label).gauge_style(Color::Blue), area);
}

fn numbers_line(dashboard: &Dashboard) -> Line<'_> {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2e}"));
    let row = &dashboard.row;
    let error = dashboard.run.error_kind.replace('_', " ");
    let mut spans = Vec::new();
    for (name, value) in [
        (error.as_str(), number(row.error)),
        ("consensus", number(row.consensus_error)),
        ("tracking", number(row.tracking_defect)),
        ("rounds/s", format!("{:.0}", dashboard.rate())),
    ] {
        spans.extend([Span::styled(format!("{name} "), QUIET), Span::raw(value), Span::raw("  ")]);
    }
    Line::from(spans)
}

fn draw_curve(frame: &mut Frame<'_>, dashboard: &Dashboard, area: Rect) {
    let curve = &dashboard.curve;
    let powers = curve.iter().map(|point| point.1);
    let (low, high) = powers.fold((0.0_f64, 0.0_f64), |(low, high), power| (low.min(power), high.max(power)));
    let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
    let last = curve.last().map_or(1.0, |point| point.0).max(1.0);
    let data = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(Color::Cyan)
        .data(curve.as_slice());
    let power = |power: f64| format!("1e{power}");
    let chart = Chart::new(vec![data])
        .block(Block::bordered().title(dashboard.run.error_label.as_str()).border_style(QUIET))
        .x_axis(Axis::default().bounds([0.0, last]).style(QUIET).labels(["0".to_owned(), format!("{last}")]))
        .y_axis(Axis::default().bounds([low, high]).style(QUIET).labels([power(low), power(high)]));
    frame.render_widget(chart, area);
}

fn draw_frames(frame: &mut Frame<'_>, dashboard: &Dashboard, area: Rect) {
    let rows = dashboard.row.frames.iter().map(|(outcome, count)| {
        Row::new([Line::from(outcome.as_str()), Line::from(count.to_string()).right_aligned()])
    });
    let table = Table::new(rows, [Constraint::Fill(1), Constraint::Length(12)])
        .block(Block::bordered().title("frames").border_style(QUIET));
    frame.render_widget(table, area);
}

fn draw_agents(frame: &mut Frame<'_>, dashboard: &Dashboard, first: usize, area: Rect) {
    fn cell<T: std::fmt::Display>(value: Option<T>) -> String {
        value.map_or("–".to_owned(), |value| value.to_string())
    }
    let row = |(agent, row): (usize, &AgentRow)| {
        let style = if row.condition == "running" { Style::new() } else { Style::new().fg(Color::Yellow) };
        Row::new([
            agent.to_string(),
            row.condition.to_owned(),
            cell(row.round),
            cell(row.epoch),
            cell(row.boot),
            row.hears.to_string(),
            row.is_heard_by.to_string(),
            cell(row.loss.map(|loss| format!("{loss:.0} %"))),
            cell(row.deviation.map(|deviation| format!("{deviation:.1e}"))),
        ])
        .style(style)
    };
    let rows = dashboard.agents.iter().enumerate().skip(first).take(area.height.into()).map(row);
    let header = ["agent", "state", "round", "epoch", "boot", "hears", "heard by", "loss", "deviation"];
    let widths = [6, 8, 10, 6, 6, 6, 9, 7, 10].map(Constraint::Length);
    let title = format!("{} agents", dashboard.agents.len());
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(QUIET))
        .block(Block::bordered().title(title).border_style(QUIET));
    frame.render_widget(table, area);
}

fn draw_log(frame: &mut Frame<'_>, dashboard: &Dashboard, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    let lines = &dashboard.lines;
    let newest = lines.iter().skip(lines.len().saturating_sub(rows));
    let text: Vec<Line<'_>> = newest
        .map(|line| {
            let color = if line.level >= 3 { Color::Yellow } else { Color::Reset };
            Line::from(vec![
                Span::styled(format!("{:>8} ", line.round), QUIET),
                Span::styled(format!("{}: ", printable(&line.name)), STRONG),
                Span::styled(printable(&line.message), Style::new().fg(color)),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title("log").border_style(QUIET)), area);
}

/// Whatever a board says stays on its line, and cannot steer the terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::tests::{dashboard, message};
    use fabswarm_view::message::Topic;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(dashboard: &Dashboard, first_agent: usize, (width, height): (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen(frame, dashboard, first_agent, false)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(width.into());
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect()
    }

    #[test]
    fn a_screen_of_80_columns_shows_what_matters() {
        let screen = drawn(&dashboard(), 0, (80, 24));
        for text in [
            "3 agents solve a problem.",
            "round 500 of at most 1000",
            "gradient norm 1.00e-2  consensus 1.00e-3  tracking 0.00e0  rounds/s 250",
            "gradient norm, relative",
            "sent                  1500",
            "agent  state    round      epoch  boot   hears  heard by  loss    deviation",
            "0      running  500        1      1      1      1         65 %    5.0e-1",
            "2      down     20         –      1      0      0         –       2.5e-1",
            "20 agent 2: is down",
            "q end the run and keep its results",
        ] {
            assert!(screen.contains(text), "{text}\nis not in\n{screen}");
        }
    }

    #[test]
    fn agents_are_scrolled() {
        let screen = drawn(&dashboard(), 2, (80, 24));
        assert!(screen.contains("2      down") && !screen.contains("0      running"), "{screen}");
    }

    #[test]
    fn no_terminal_is_too_small_and_no_line_steers_it() {
        let mut dashboard = dashboard();
        let hostile = r#"{"round":21,"level":3,"name":"agent\n 1","message":"\u001b[2J\u0007gone"}"#;
        dashboard.take(&message(Topic::Log, 21, hostile));
        assert!(drawn(&dashboard, 0, (80, 24)).contains("agent 1: [2Jgone"));
        for size in [(1, 1), (10, 3), (40, 8), (300, 100)] {
            drawn(&dashboard, 0, size);
            drawn(&Dashboard::default(), 0, size);
        }
    }
}
