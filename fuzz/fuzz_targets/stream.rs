//! The near end of a stream, and what a far end hands over about it.
//! The input is packets of 64 bytes without the first four, which each packet has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tardy_hot::{
    packet::{MAGIC, Packet},
    ring::ring,
    stop::Stop,
    stream::{
        Counts, PacketPeriod, PacketSchedule, Packets, Passage, RecvOutcome, SpinPacing, StreamEnd,
        StreamLimits, both,
    },
};

struct Script<'a>(std::slice::Chunks<'a, u8>);

impl Packets for Script<'_> {
    fn send(&mut self, _: &Packet) -> Result<(), i32> {
        Ok(())
    }

    fn receive(&mut self) -> Result<RecvOutcome, i32> {
        let rest = self.0.next().ok_or(libc::ECONNRESET)?;
        let packet = Packet::read(&[&MAGIC[..], rest].concat());
        Ok(packet.map_or(RecvOutcome::Foreign, RecvOutcome::Packet))
    }

    fn wait(&mut self, _: i64) -> Result<(), i32> {
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = data.first_chunk() {
        let _ = Passage::from_bytes(bytes);
    }
    let (counts, stop, enough) = (Counts::default(), Stop::new(), Stop::new());
    let (mut passages, _reader) = ring(64);
    let mut port = Script(data.chunks(60));
    let passages = &mut passages;
    let mut end =
        StreamEnd { port: &mut port, pace: SpinPacing, session: 0, passages, counts: &counts };
    let period = PacketPeriod { ns: 1_000, fraction: 0 };
    let schedule = PacketSchedule { first_ns: 0, period, packets: 3, recorded_from: 1, flow: 0 };
    let limits = StreamLimits { until_ns: i64::MAX, stop: &stop, enough: &enough };
    let _ = both(&mut end, &schedule, limits);
});
