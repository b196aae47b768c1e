//! Summary to pages: tables for a terminal, one self-contained HTML page.

pub mod ab;
mod attached;
pub mod ab_page;
mod binned;
pub mod causes;
mod cell_run;
mod change;
pub mod collect;
pub mod compare;
pub mod comparison_page;
mod cycles_headline;
mod curve;
#[cfg(test)]
mod extremes;
pub mod figure_gate;
mod figures;
pub mod finding;
pub mod deadline;
pub mod gate;
pub mod gate_decision;
pub mod headline;
pub mod how_long;
pub mod html;
pub mod interrupts;
pub mod intervals;
pub mod lab;
pub mod matrix_page;
pub mod messages;
pub mod sample_name;
pub mod suite;
pub mod suite_page;
pub mod page;
pub mod page_of_ab;
pub mod plan;
pub mod plan_page;
pub mod plan_sheet;
pub mod plans_beside;
pub mod published;
pub mod plot;
pub mod points;
pub mod profile;
#[cfg(test)]
mod schema;
pub mod settings;
pub mod table;
pub mod tail;
mod tasks;
pub mod terminal;
pub mod time_range;
pub mod trend;
mod tracks;
pub mod vocabulary;
pub mod why;
pub mod without_host;
pub mod words;

#[cfg(test)]
pub(crate) use crate::run::fixture;
