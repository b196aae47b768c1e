//! What the processes at the other end of messages do: a line for each job, which the probe that
//! orders it names.

use std::os::fd::OwnedFd;

use serde_json::{Value, from_value};

use super::{
    bandwidth::{self, BandwidthWork},
    far_end::{FarEndJob, FarEndWork},
    pingpong::{self, Pong},
    receive::{self, PacketSender},
    stream::{self, FarEndStream},
};
use crate::transports::TransportEnd;

/// All jobs there are.
pub const JOBS: &[FarEndJob] = &[
    FarEndJob {
        name: bandwidth::JOB,
        work: |order, _| Ok(Box::new(BandwidthWork::from_order(order)?)),
    },
    FarEndJob { name: pingpong::JOB, work: pong },
    FarEndJob { name: pingpong::TRACED_JOB, work: traced_pong },
    FarEndJob {
        name: receive::JOB,
        work: |order, _| Ok(Box::new(PacketSender::new(from_value(order)?))),
    },
    FarEndJob {
        name: stream::JOB,
        work: |plan, descriptors| Ok(Box::new(FarEndStream::new(from_value(plan)?, descriptors))),
    },
];

fn pong(order: Value, descriptors: Vec<OwnedFd>) -> serde_json::Result<Box<dyn FarEndWork>> {
    Ok(Box::new(Pong::new(TransportEnd::from_order(from_value(order)?, descriptors))))
}

/// The last descriptor is where it notes when it had each message.
fn traced_pong(order: Value, mut own: Vec<OwnedFd>) -> serde_json::Result<Box<dyn FarEndWork>> {
    let note = own.pop();
    Ok(Box::new(Pong::traced(TransportEnd::from_order(from_value(order)?, own), note)))
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
