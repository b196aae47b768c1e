//! What the hypervisor says of itself, by the processor's own instruction (CPUID).

/// Leaves of a hypervisor begin at one of these, 0x100 apart; several may be present at once.
const FIRST_LEAF: u32 = 0x4000_0000;
const LEAVES: u32 = 16;

/// KVM's name of itself: EBX, ECX and EDX of its first leaf.
const KVM: [u8; 12] = *b"KVMKVMKVM\0\0\0";

/// `KVM_FEATURE_STEAL_TIME`, of EAX of its second leaf (Documentation/virt/kvm/x86/cpuid.rst).
const STEAL_TIME: u32 = 1 << 5;

/// Whether KVM offers to count the time that it takes from this guest; true also where the
/// processor has no such instruction to ask by.
#[must_use]
pub fn kvm_counts_steal() -> bool {
    cfg!(not(target_arch = "x86_64")) || counts_steal(&ask)
}

#[cfg(target_arch = "x86_64")]
fn ask(leaf: u32) -> [u32; 4] {
    let answer = core::arch::x86_64::__cpuid(leaf);
    [answer.eax, answer.ebx, answer.ecx, answer.edx]
}

#[cfg(not(target_arch = "x86_64"))]
fn ask(_leaf: u32) -> [u32; 4] {
    [0; 4]
}

/// By the answers to leaves: EAX, EBX, ECX, EDX.
fn counts_steal(ask: &dyn Fn(u32) -> [u32; 4]) -> bool {
    let is_virtual = ask(1)[2] >> 31 == 1;
    let base = (0..LEAVES).map(|n| FIRST_LEAF + 0x100 * n).find(|base| {
        let name = ask(*base)[1..].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        name == KVM
    });
    is_virtual && base.is_some_and(|base| ask(base + 1)[0] & STEAL_TIME != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor whose hypervisor has these leaves.
    fn machine(leaves: &[(u32, [u32; 4])]) -> impl Fn(u32) -> [u32; 4] {
        move |leaf| leaves.iter().find(|(known, _)| *known == leaf).map_or([0; 4], |it| it.1)
    }

    const GUEST: (u32, [u32; 4]) = (1, [0, 0, 1 << 31, 0]);
    const NAME: [u32; 4] = [0x4000_0001, 0x4b4d_564b, 0x564b_4d56, 0x4d];

    #[test]
    fn steal_is_counted_where_kvm_says_so_wherever_its_leaves_are() {
        for base in [0x4000_0000, 0x4000_0100] {
            let feature = |bits| [GUEST, (base, NAME), (base + 1, [bits, 0, 0, 0])];
            assert!(counts_steal(&machine(&feature(0x0100_7efb))));
            assert!(!counts_steal(&machine(&feature(0x0100_7edb))), "KVM without the feature");
        }
    }

    #[test]
    fn other_hypervisors_and_none_do_not_count_it() {
        let other = [GUEST, (0x4000_0000, [0, 0x5447_4354, 0x4354_4743, 0x4743_5447])];
        assert!(!counts_steal(&machine(&other)));
        let bare = [(0x4000_0000, NAME), (0x4000_0001, [STEAL_TIME, 0, 0, 0])];
        assert!(!counts_steal(&machine(&bare)), "no hypervisor at all");
    }
}
