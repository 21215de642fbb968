//! The remaining time of the tables, from the measured turns.

use std::collections::HashMap;
use std::time::Duration;

use super::bursts::{SLOW_TURN, TURN_SECONDS};

/// The turns so far and those to come.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    /// Time of a turn of each contender, in seconds: half of it is the last one, so that larger cells are soon heard of.
    measured: HashMap<String, f64>,
    /// Turns in a cell of each contender that is not slow.
    rounds: u64,
    /// Tables that did not begin.
    ahead: Vec<Table>,
    /// The rest of the present table after its present cell.
    now: Table,
    /// Turns that each of its contenders still has in that cell.
    left: Vec<u64>,
}

/// A table, or its rest.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The contenders in it.
    pub(super) contenders: Vec<String>,
    /// Its cells.
    pub(super) cells: usize,
}

impl Outlook {
    /// No part of these tables was measured; a cell has this number of rounds.
    pub(super) fn new(ahead: Vec<Table>, rounds: u64) -> Outlook {
        Outlook { ahead, rounds, ..Outlook::default() }
    }

    /// The first of the tables ahead begins, with these contenders.
    pub(super) fn begin_table(&mut self, contenders: Vec<String>) {
        let cells = if self.ahead.is_empty() { 0 } else { self.ahead.remove(0).cells };
        self.now = Table { contenders, cells };
    }

    /// The next cell of the table begins.
    pub(super) fn begin_cell(&mut self) {
        self.now.cells = self.now.cells.saturating_sub(1);
        self.left = vec![self.rounds; self.now.contenders.len()];
    }

    /// A contender had a turn in this cell.
    pub(super) fn note(&mut self, contender: usize, took: Duration) {
        let seconds = took.as_secs_f64();
        let known = self.measured.entry(self.now.contenders[contender].clone()).or_insert(seconds);
        *known = (*known + seconds) / 2.0;
        self.left[contender] = self.left[contender].saturating_sub(1);
    }

    /// A contender has no further turn in this cell.
    pub(super) fn leave_out(&mut self, contender: usize) {
        self.left[contender] = 0;
    }

    /// Remaining time of all tables.
    pub(super) fn rest(&self) -> Duration {
        let cell = self.now.contenders.iter().zip(&self.left).map(|(name, left)| self.turn(name) * *left as f64);
        let tables = self.ahead.iter().chain([&self.now]).map(|table| self.seconds(table));
        Duration::try_from_secs_f64(cell.chain(tables).sum()).unwrap_or(Duration::ZERO)
    }

    fn seconds(&self, table: &Table) -> f64 {
        let in_cell = |name: &String| {
            let turn = self.turn(name);
            // A slow contender has one turn.
            if turn > SLOW_TURN.as_secs_f64() { turn } else { turn * self.rounds as f64 }
        };
        table.contenders.iter().map(in_cell).sum::<f64>() * table.cells as f64
    }

    fn turn(&self, contender: &str) -> f64 {
        self.measured.get(contender).copied().unwrap_or(TURN_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(contenders: &[&str], cells: usize) -> Table {
        Table { contenders: contenders.iter().map(|name| (*name).to_owned()).collect(), cells }
    }

    #[track_caller]
    fn check(outlook: &Outlook, seconds: f64) {
        let rest = outlook.rest().as_secs_f64();
        assert!((rest - seconds).abs() < 1e-6, "{rest} s in place of {seconds} s");
    }

    #[test]
    fn a_slow_contender_counts_once_a_cell_and_in_later_tables_too() {
        let tables = || vec![table(&["fast", "slow"], 6), table(&["other", "slow"], 2)];
        let mut outlook = Outlook::new(tables(), 5);
        check(&outlook, (6 + 2) as f64 * 2.0 * 5.0 * TURN_SECONDS);
        outlook.begin_table(vec!["fast".to_owned(), "slow".to_owned()]);
        outlook.begin_cell();
        check(&outlook, (6 + 2) as f64 * 2.0 * 5.0 * TURN_SECONDS);
        outlook.note(0, Duration::from_millis(100));
        outlook.note(1, Duration::from_secs(30));
        outlook.leave_out(1);
        // Four more turns here, five in each of five cells; one slow turn in each of seven cells; five of another one in two.
        check(&outlook, 4.0 * 0.1 + 25.0 * 0.1 + 7.0 * 30.0 + 10.0 * TURN_SECONDS);
        outlook.begin_cell();
        check(&outlook, 5.0 * 0.1 + 20.0 * 0.1 + 5.0 * 30.0 + 4.0 * 30.0 + 2.0 * 30.0 + 10.0 * TURN_SECONDS);
    }

    #[test]
    fn the_last_turns_count_most() {
        let mut outlook = Outlook::new(vec![table(&["one"], 1)], 3);
        outlook.begin_table(vec!["one".to_owned()]);
        outlook.begin_cell();
        outlook.note(0, Duration::from_millis(100));
        outlook.note(0, Duration::from_millis(300));
        check(&outlook, 0.2);
    }
}
