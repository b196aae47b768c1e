//! The full-screen view of a run in progress: values in, frames out. It reads nothing, knows no
//! probe, and prints nothing; `cli` fills in [`LiveView`] once a second and shows what comes out.

mod columns;
mod frame;
mod ink;
mod panels;
mod sections;
mod state;
mod strip;
mod table;
mod view;

pub(crate) use frame::{draw, text};
pub(crate) use ink::Ink;
pub(crate) use state::{Action, ViewState};
pub(crate) use view::{
    CauseRow, CaveatLine, CpuShares, KeptSample, LiveStatus, LiveView, LoadState, MovedInterrupt,
    SeriesRow,
};

#[cfg(test)]
mod tests;
