//! The encoding of protocol buffers, by hand: the formats that are written in it have a dozen
//! fields here each, and no schema has to be compiled.

/// A message in the encoding of protocol buffers (protobuf.dev/programming-guides/encoding).
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint((u64::from(field) << 3) | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn inner(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    pub(super) fn packed(&mut self, field: u32, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.bytes(field, &packed.0);
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Fields of a message: a number, or bytes.
    pub(in crate::exchange::export) fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        }
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            let inner = if key & 7 == 2 { value as usize } else { 0 };
            all.push((key >> 3, value, bytes[..inner].to_vec()));
            bytes = &bytes[inner..];
        }
        all
    }

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        let mut message = Message::default();
        message.varint(300);
        message.varint(u64::MAX);
        assert_eq!(message.0[..2], [0xac, 0x02]);
        assert_eq!(message.0.len(), 12);
    }
}
