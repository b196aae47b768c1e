//! The kernel's own trace: pages, and the files that describe them. An even first byte begins a
//! page that the descriptions of a present kernel are for; else the input is the descriptions, cut
//! at each zero byte, of a page that is zeros but for its length.
#![no_main]

use std::iter;

use libfuzzer_sys::fuzz_target;
use tardy::kernel::tracefs::Decoder;

const PAGE: &str = "field: u64 timestamp; offset:0; size:8; signed:0;
field: local_t commit; offset:8; size:8; signed:1;
field: char data; offset:16; size:4080; signed:0;";
const HEADER: &str = "type_len : 5 bits
time_delta : 27 bits
array : 32 bits
padding : type == 29
time_extend : type == 30
time_stamp : type == 31
data max type_len == 28";
const COMMON: &str = "ID: 375
field:unsigned short common_type; offset:0; size:2; signed:0;
field:int common_pid; offset:4; size:4; signed:1;
field:pid_t pid; offset:24; size:4; signed:1;
field:int prio; offset:28; size:4; signed:1;
field:int target_cpu; offset:32; size:4; signed:1;";
const MASK: &str = "ID: 353
field:unsigned short common_type; offset:0; size:2; signed:0;
field:int common_pid; offset:4; size:4; signed:1;
field:__data_loc cpumask_t cpumask; offset:8; size:4; signed:0;
field:void * callback; offset:16; size:8; signed:0;";

fuzz_target!(|data: &[u8]| {
    let mut found = Vec::new();
    match data.split_first() {
        Some((first, page)) if first % 2 == 0 => {
            let formats = [
                ("sched/sched_waking", COMMON.to_owned()),
                ("ipi/ipi_send_cpumask", MASK.to_owned()),
            ];
            let decoder = Decoder::new(PAGE, HEADER, &formats).expect("these are understood");
            decoder.read(0, page, &mut found);
            assert!(found.len() <= page.len() / 4);
        }
        _ => {
            let text = String::from_utf8_lossy(data);
            let mut texts = text.split('\0').map(str::to_owned).chain(iter::repeat(String::new()));
            let [page, header, one, two] = [(); 4].map(|()| texts.next().unwrap_or_default());
            let formats = [("sched/sched_switch", one), ("ipi/ipi_send_cpumask", two)];
            if let Some(decoder) = Decoder::new(&page, &header, &formats) {
                let mut bytes = vec![0; decoder.page_bytes().min(1 << 17)];
                for at in (0..bytes.len()).step_by(5) {
                    bytes[at] = 0x21;
                }
                decoder.read(0, &bytes, &mut found);
            }
        }
    }
});
