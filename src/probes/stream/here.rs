//! A stream between two ends on this machine: the local one is a thread, each remote one a process.

use std::{io, net::SocketAddrV4, os::fd::OwnedFd, sync::Arc};

use tardy_hot::stop::Stop;

use super::{
    BACK, JOB, Stream, THERE,
    end::EndPlan,
    flow::{self, Flow},
    near_end::StreamThread,
    numbered,
    passages::ReceiverRecord,
    stages::{FlowStages, SharedFlowStages},
    supervisor::{Back, Receiving, ReturnSender, StreamKeeper, StreamNearEnd},
    zmq,
};
use crate::{
    probes::{
        ArmError, ArmOptions, Armed, MessageEvidence, Recorded, TracedThread, Tracing,
        far_end::{FarEndSpec, Launched},
    },
    run::MessageRecord,
    setup::threads::{Found, plain},
};

/// The threads of the ends among those that are traced: the local one, then those of the remote
/// endpoints.
const NEAR: usize = 0;
const FAR: usize = 1;

/// What is known of the messages before any is sent.
type Known = (MessageRecord, MessageEvidence);

impl Stream {
    /// Arms both ends.
    pub(super) fn arm_here(&self, wants: &ArmOptions, stop: &Arc<Stop>) -> Result<Armed, ArmError> {
        let refused = |error: io::Error| self.refused(&error);
        let sockets = self.sockets().map_err(refused)?;
        let record = self.record(&sockets).map_err(refused)?;
        let evidence = self.evidence(&sockets.near.0);
        let session = super::session().map_err(refused)?;
        let (mut plan, mut far_plan) = self.plans(session, Some(sockets.near.1));
        zmq::place(self, (&mut plan, &mut far_plan), &sockets);
        let tracing = wants.tracing.as_ref();
        // Before memory that measuring threads use: starting a process makes its pages fault.
        let launched = self.launch(&far_plan, sockets.far_end, tracing)?;
        let (flows, recorded, shared) = self.armed_flows(wants);
        let mut recorded = recorded.into_iter();
        let mut armed = Armed::new(stop);
        let first = recorded.next().ok_or_else(|| refused(io::ErrorKind::Other.into()))?;
        let watch = watch(&mut plan, tracing);
        let (near, seen) = StreamThread::new(plan, sockets.near.0, self.near.clone(), watch, stop);
        let near = near.spawn(&mut armed, first, seen)?;
        armed.recorded.extend(recorded);
        let mut flows = flows.into_iter();
        let there = receiving(&mut armed, launched, &mut flows)?;
        if wants.tracing.is_some() {
            armed.traced = self.traced(&armed.found, shared);
            armed.hurries = true;
        }
        let keeper = self.keeper(near, there, flows.next(), (record, evidence));
        armed.supervisor = Some(Box::new(keeper));
        Ok(armed)
    }

    fn keeper(
        &self,
        near: StreamNearEnd,
        there: Vec<Receiving>,
        back: Option<Flow>,
        (record, evidence): Known,
    ) -> StreamKeeper {
        let sender = ReturnSender::Far;
        let back = back.zip(self.sending_back());
        StreamKeeper {
            per_1000_s: self.rate.per_1000_s,
            near,
            there,
            back: back.map(|(flow, sending)| Back { flow, sending, sender, ways: None }),
            record,
            evidence,
            schedule: None,
            ended: None,
            progress: (0, i64::MAX / 2),
        }
    }

    /// Starts the remote endpoints, each with its socket and, where wake-ups are traced, the memory
    /// of its record.
    fn launch(
        &self,
        plan: &EndPlan,
        sockets: Vec<(OwnedFd, SocketAddrV4)>,
        tracing: Option<&Tracing>,
    ) -> Result<Vec<Launched>, ArmError> {
        let start = |(number, (socket, _)): (u32, (OwnedFd, SocketAddrV4))| {
            let name = numbered("far", number);
            let cannot = |why: &str| ArmError::Far { name: name.clone(), why: why.into() };
            let (mut plan, mut descriptors) = (plan.clone(), vec![socket]);
            if let Some(tracing) = tracing {
                let place = tracing.records.place(FAR + number as usize);
                let (memory, at) = place.ok_or_else(|| cannot("it has no record"))?;
                let memory = memory.try_clone_to_owned();
                descriptors.push(memory.map_err(|error| cannot(&plain(&error)))?);
                plan.record_at = Some(at);
            }
            let order = FarEndSpec::new(name, JOB, &plan, self.far_end.clone())?;
            Launched::process(order, descriptors)
        };
        (0_u32..).zip(sockets).map(start).collect()
    }

    /// All flows, the series of all of them in their order, and where those of traced ones are
    /// read.
    fn armed_flows(&self, wants: &ArmOptions) -> (Vec<Flow>, Vec<Recorded>, Vec<SharedFlowStages>) {
        let (mut flows, mut recorded, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        for (name, cpu) in self.flows() {
            let (mut flow, taken) = Flow::new(&name, self.late_over_ns, wants.ring_samples);
            recorded.extend(flow.recorded(Some(cpu), taken));
            if let Some(tracing) = &wants.tracing {
                let sender = if name == BACK { FAR } else { NEAR };
                let (stages, others) = FlowStages::new(tracing, sender, &flow.whole);
                recorded.extend(others.recorded(&flow::head(&name, Some(cpu))));
                flow.stages = Some(stages);
                shared.push(others);
            }
            flows.push(flow);
        }
        (flows, recorded, shared)
    }

    /// The threads of all ends, for the BPF side to follow: the local one and the remote ones,
    /// which were `found` to run so.
    fn traced(
        &self,
        found: &[(String, Found)],
        shared: Vec<SharedFlowStages>,
    ) -> Vec<TracedThread> {
        let Some(((_, near), far_ends)) = found.split_first() else { return Vec::new() };
        let mut first = TracedThread::far("near", self.near.cpu, near);
        let (mut others, mut far_ends) = (Vec::new(), far_ends.iter());
        for ((name, cpu), shared) in self.flows().into_iter().zip(shared) {
            if name == BACK {
                first = shared.thread(&name, BACK, cpu, near);
            } else if let Some((_, far_end)) = far_ends.next() {
                others.push(shared.thread(&name, THERE, cpu, far_end));
            }
        }
        std::iter::once(first).chain(others).collect()
    }
}

/// Waits until the remote endpoints are ready; each receives one of the flows.
fn receiving(
    armed: &mut Armed,
    launched: Vec<Launched>,
    flows: &mut impl Iterator<Item = Flow>,
) -> Result<Vec<Receiving>, ArmError> {
    let mut there = Vec::new();
    for (launched, flow) in launched.into_iter().zip(flows) {
        let far_end = launched.ready()?;
        armed.found.push(far_end.found());
        there.push(Receiving { far_end: Some(far_end), flow, rest: Vec::new() });
    }
    Ok(there)
}

/// Where the local endpoint finds its wake-ups, if it receives and they are traced.
fn watch(plan: &mut EndPlan, tracing: Option<&Tracing>) -> Option<ReceiverRecord> {
    let tracing = tracing.filter(|_| plan.receives)?;
    plan.record_at = Some(0);
    Some(ReceiverRecord::Here(Arc::clone(&tracing.records), NEAR))
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use tardy_hot::stages::{Records, ThreadRecord};

    use super::*;
    use crate::{
        probes::{
            Probe, TracedSamples,
            stream::{PacketWait, RemoteEcho, StreamTransport},
        },
        setup::threads::ThreadConfig,
        sys::sched::Policy,
    };

    #[derive(Debug)]
    struct NoRecords;

    impl Records for NoRecords {
        fn record(&self, _: usize) -> Option<&ThreadRecord> {
            None
        }

        fn place(&self, _: usize) -> Option<(BorrowedFd<'_>, usize)> {
            None
        }
    }

    fn stream(way: StreamTransport, both_ways: bool) -> Stream {
        let terms = |cpu| ThreadConfig { policy: Policy::Other, priority: 0, cpu, slack_ns: 1 };
        Stream {
            way,
            size: 64,
            rate: "1kpps".parse().unwrap(),
            both_ways,
            waits: (PacketWait::Sleep, PacketWait::Sleep),
            late_over_ns: 1_000_000,
            near: terms(0),
            far_end: terms(1),
            echo: None,
        }
    }

    fn found(tid: i32) -> (String, Found) {
        let found = Found { tid, ..Found::of_this_thread().unwrap() };
        (String::new(), found)
    }

    #[test]
    fn series_are_made_in_the_order_in_which_they_were_planned() {
        let group = StreamTransport::Multicast { group: [239, 1, 2, 3].into(), receivers: 2 };
        for (way, both_ways) in [(StreamTransport::Udp, true), (group, false)] {
            let stream = stream(way, both_ways);
            let tracing = Tracing { records: Arc::new(NoRecords), is_rt: false };
            let heads = stream.heads(Some(&tracing));
            let wants = ArmOptions { ring_samples: None, tracing: Some(tracing) };
            let (flows, recorded, shared) = stream.armed_flows(&wants);
            let made: Vec<_> = recorded.into_iter().map(|one| one.head).collect();
            assert_eq!(made, heads);
            assert_eq!((flows.len(), shared.len(), heads.len()), (2, 2, 12));
            assert_eq!(stream.heads(None).len(), 6);
        }
    }

    #[test]
    fn each_receiver_has_its_packets_and_knows_their_sender() {
        let tracing = Some(Tracing { records: Arc::new(NoRecords), is_rt: false });
        let wants = ArmOptions { ring_samples: None, tracing };
        let of = |way, both_ways, found: &[(String, Found)]| {
            let stream = stream(way, both_ways);
            let (_, _, shared) = stream.armed_flows(&wants);
            let threads = stream.traced(found, shared);
            let samples = |thread: &TracedThread| match &thread.samples {
                TracedSamples::Packets { way, sender, .. } => Some((*way, *sender)),
                _ => None,
            };
            let one = |thread: &TracedThread| (thread.name.clone(), thread.tid, samples(thread));
            threads.iter().map(one).collect::<Vec<_>>()
        };
        let both = of(StreamTransport::Tcp, true, &[found(5), found(6)]);
        let (there, back) = (Some(("there", Some(NEAR))), Some(("back", Some(FAR))));
        assert_eq!(both, [("back".into(), 5, back), ("there".into(), 6, there)]);
        let group = StreamTransport::Multicast { group: [239, 1, 2, 3].into(), receivers: 2 };
        let several = of(group, false, &[found(5), found(6), found(7)]);
        let first = ("near".into(), 5, None);
        assert_eq!(several, [first, ("there".into(), 6, there), ("there2".into(), 7, there)]);
    }

    #[test]
    fn ends_that_send_and_receive_know_how_late_a_packet_is_that_meets_a_sending() {
        let of = |stream: &Stream| {
            stream.one_thread().map(|one| (one.ends, one.series, one.meets_ns, one.period_ns))
        };
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let both = (names(&["near", "far"]), names(&["back", "there"]), 500_000, 1_000_000);
        assert_eq!(of(&stream(StreamTransport::Udp, true)), Some(both));
        assert_eq!(of(&stream(StreamTransport::Udp, false)), None);
        assert_eq!(of(&stream(StreamTransport::ZmqPubSub, true)), None);
        let echo = RemoteEcho { to: "10.0.0.2:7117".into(), token: Vec::new() };
        let there_and_back = Stream { echo: Some(echo), ..stream(StreamTransport::Tcp, false) };
        let near = (names(&["near"]), names(&["rtt"]), 1_000_000, 1_000_000);
        assert_eq!(of(&there_and_back), Some(near));
    }

    #[test]
    fn without_memory_that_can_be_shared_no_far_end_is_started() {
        let stream = stream(StreamTransport::Udp, false);
        let tracing = Some(Tracing { records: Arc::new(NoRecords), is_rt: false });
        let wants = ArmOptions { ring_samples: None, tracing };
        let error = stream.arm(&wants, &Arc::new(Stop::new())).unwrap_err().to_string();
        assert!(error.contains("far") && error.contains("no record"), "{error}");
    }
}
