//! What the processes at the other end of messages do: a line for each job, which the probe that
//! orders it names.

use std::os::fd::OwnedFd;

use serde_json::{Value, from_value};

use super::{
    far::{Job, Work},
    pingpong::{self, Pong},
    receive::{self, Sender},
    stream::{self, FarStream},
};
use crate::transports::pair::End;

/// All jobs there are.
pub const JOBS: &[Job] = &[
    Job { name: pingpong::JOB, work: pong },
    Job { name: pingpong::TRACED_JOB, work: traced_pong },
    Job { name: receive::JOB, work: |order, _| Ok(Box::new(Sender::new(from_value(order)?))) },
    Job {
        name: stream::JOB,
        work: |plan, descriptors| Ok(Box::new(FarStream::new(from_value(plan)?, descriptors))),
    },
];

fn pong(order: Value, descriptors: Vec<OwnedFd>) -> serde_json::Result<Box<dyn Work>> {
    Ok(Box::new(Pong::new(End::from_order(from_value(order)?, descriptors))))
}

/// The last descriptor is where it notes when it had each message.
fn traced_pong(order: Value, mut own: Vec<OwnedFd>) -> serde_json::Result<Box<dyn Work>> {
    let note = own.pop();
    Ok(Box::new(Pong::traced(End::from_order(from_value(order)?, own), note)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_a_name_of_its_own_and_refuses_what_is_no_order() {
        for job in JOBS {
            assert_eq!(JOBS.iter().filter(|other| other.name == job.name).count(), 1);
            assert!((job.work)(Value::Null, Vec::new()).is_err(), "{}", job.name);
        }
    }
}
