//! How the compiler of the programs has laid out the structures of `recorder.h`, for the tests that
//! compare this side with it: read from the types in the object, for which no rights are needed.

use libbpf_rs::btf::{
    Btf, BtfType, HasSize as _,
    types::{Array, Composite, Enum, Int, MemberAttr, Struct},
};

/// A structure of the header.
#[derive(Debug)]
pub(super) struct Layout {
    /// Bytes of it.
    pub size: usize,
    /// Name, first byte and bytes of each field; a field without a name has an empty one.
    pub fields: Vec<(String, usize, usize)>,
}

impl Layout {
    /// Of the structure `name` of the recorder.
    pub(super) fn of(name: &str) -> Self {
        Self::in_object(concat!(env!("OUT_DIR"), "/recorder.bpf.o"), name)
    }

    /// Of the structure `name` in the object at `path`.
    pub(super) fn in_object(path: &str, name: &str) -> Self {
        let btf = Btf::from_path(path).unwrap();
        let layout: Struct<'_> = btf.type_by_name(name).unwrap();
        let mut fields = Vec::new();
        for member in layout.iter() {
            let MemberAttr::Normal { offset } = member.attr else { panic!("{name}: a bit field") };
            let field = member.name.map_or("", |name| name.to_str().unwrap()).to_owned();
            let of: BtfType<'_> = btf.type_by_id(member.ty).unwrap();
            fields.push((field, offset as usize / 8, bytes(of)));
        }
        Self { size: layout.size(), fields }
    }

    /// First byte and bytes of a field.
    pub(super) fn field(&self, name: &str) -> (usize, usize) {
        let found = self.fields.iter().find(|(field, ..)| field == name);
        found.map(|&(_, offset, bytes)| (offset, bytes)).unwrap_or_else(|| panic!("no {name}"))
    }
}

fn bytes(of: BtfType<'_>) -> usize {
    let of = of.skip_mods_and_typedefs();
    if let Ok(array) = Array::try_from(of) {
        return array.capacity() * bytes(array.contained_type());
    }
    let composite = Composite::try_from(of).map(|it| it.size());
    let number = composite.or_else(|of| Int::try_from(of).map(|it| it.size()));
    number.or_else(|of| Enum::try_from(of).map(|it| it.size())).unwrap()
}
