//! An ACPI table that gives the guest's CPUs frequencies, so that it has frequency governors.
//!
//! QEMU emulates none. The table describes three performance states, switched by writing to an I/O
//! port without a device: the kernel's driver accepts it, and no emulated CPU gets faster.

/// Where states are written to. No device of the guest is there.
const PORT: u64 = 0x0ca0;

/// MHz of the states, fastest first.
const FREQUENCIES_MHZ: [u32; 3] = [3000, 2000, 1000];

/// The body of a table `SSDT` for this many CPUs, without its header.
pub fn frequencies(cpus: u8) -> Vec<u8> {
    (0..cpus).flat_map(cpu).collect()
}

/// `Scope (\_SB.CPUS.C00N) { ... }`: what QEMU's own tables call a CPU.
fn cpu(number: u8) -> Vec<u8> {
    // Three names of four characters from the root.
    let path = format!("\\\u{2f}\u{3}_SB_CPUSC{number:03X}").into_bytes();
    let states = FREQUENCIES_MHZ.iter().zip(0..).map(|(mhz, state)| {
        // MHz, mW, us to switch, us of the bus, what to write, what to read then
        package(&[*mhz, mhz * 10, 10, 10, state, state].map(integer))
    });
    let states: Vec<Vec<u8>> = states.collect();
    let body = [
        path,
        name(b"_PCT", &package(&[register(), register()])),
        name(b"_PSS", &package(&states)),
        name(b"_PPC", &integer(0)),
    ];
    sized(&[0x10], &body.concat())
}

fn name(name: &[u8; 4], value: &[u8]) -> Vec<u8> {
    [&[0x08], name.as_slice(), value].concat()
}

fn integer(value: u32) -> Vec<u8> {
    [&[0x0c], value.to_le_bytes().as_slice()].concat()
}

fn package(elements: &[Vec<u8>]) -> Vec<u8> {
    // None here has more than three or six.
    let count = u8::try_from(elements.len()).unwrap_or(u8::MAX);
    sized(&[0x12], &[&[count], elements.concat().as_slice()].concat())
}

/// `ResourceTemplate () { Register (SystemIO, 8, 0, PORT) }`
fn register() -> Vec<u8> {
    let descriptor = [&[0x82, 12, 0, 1, 8, 0, 1], PORT.to_le_bytes().as_slice()].concat();
    let template = [descriptor.as_slice(), &[0x79, 0]].concat();
    let length = u8::try_from(template.len()).unwrap_or(u8::MAX);
    sized(&[0x11], &[&[0x0a, length], template.as_slice()].concat())
}

/// An operator, the length of the rest (which counts its own bytes), and the rest.
fn sized(operator: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = match rest.len() + 1 {
        short @ 0..0x40 => vec![short as u8],
        // Two bytes: four bits beside the count of bytes, and eight.
        _ => {
            let long = rest.len() + 2;
            vec![0x40 | (long & 0xf) as u8, (long >> 4) as u8]
        }
    };
    [operator, &length, rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_themselves_in_one_byte_or_two() {
        assert_eq!(sized(&[0x12], &[7; 3]), [0x12, 4, 7, 7, 7]);
        assert_eq!(sized(&[0x12], &[7; 0x3e])[..2], [0x12, 0x3f]);
        assert_eq!(sized(&[0x12], &[7; 0x3f])[..3], [0x12, 0x41, 0x04]);
        assert_eq!(sized(&[0x12], &[7; 0x100])[..3], [0x12, 0x42, 0x10]);
    }

    #[test]
    fn a_register_is_a_buffer_of_one_descriptor() {
        let register = register();
        assert_eq!(register[..5], [0x11, 20, 0x0a, 17, 0x82]);
        assert_eq!(register[5..12], [12, 0, 1, 8, 0, 1, 0xa0]);
        assert!(register.ends_with(&[0x79, 0]));
    }

    #[test]
    fn every_cpu_has_its_own_scope_that_is_as_long_as_it_says() {
        let table = frequencies(2);
        let one = table.len() / 2;
        for (number, scope) in table.chunks(one).enumerate() {
            assert_eq!(scope[0], 0x10);
            let length = usize::from(scope[1] & 0xf) | usize::from(scope[2]) << 4;
            assert_eq!(length + 1, scope.len());
            let path = format!("\\\u{2f}\u{3}_SB_CPUSC00{number}");
            assert_eq!(&scope[3..3 + path.len()], path.as_bytes());
        }
    }
}
