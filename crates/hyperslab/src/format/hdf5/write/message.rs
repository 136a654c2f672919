//! The messages of object headers, written (specification, IV.A.2). What they hold is what `message` reads.

use super::encoder::{Encoder, width_of};
use super::{Libver, datatype};
use crate::codec::FilterSpec;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::format::hdf5::message::fill::{AllocationTime, Fill, FillTime};
use crate::format::hdf5::message::layout::{Chunked, IndexKind, LayoutClass};
use crate::format::hdf5::parse::UNDEFINED;
use crate::limits::Limits;
use crate::model::{Dataspace, FillValue, LinkTarget};
use crate::shape::Name;

/// What a file is for, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style<'a> {
    /// The oldest libraries that must read it.
    pub(super) libver: Libver,
    /// Bounds of nested types.
    pub(super) limits: &'a Limits,
}

impl Style<'_> {
    /// Whether structures of the first version are wanted.
    pub(super) fn is_early(&self) -> bool {
        self.libver == Libver::Earliest
    }
}

/// The datatype message.
pub(super) fn dtype(out: &mut Encoder, dtype: &DType, style: Style<'_>) -> Result<()> {
    let needed = datatype::needed(dtype);
    if needed > 3 && style.libver != Libver::Latest {
        return Err(Error::unsupported(format!("the type {dtype} in files for HDF5 1.10 and older"))
            .hint("write the file for the latest version"));
    }
    datatype::encode(out, dtype, if style.is_early() { 1 } else { 3 }, style.limits)
}

/// The body of a datatype message that is a committed type: where its object header is.
pub(super) fn committed(out: &mut Encoder, address: u64) {
    out.u8(2).u8(2).address(address);
}

/// The dataspace message.
pub(super) fn dataspace(out: &mut Encoder, space: &Dataspace, style: Style<'_>) -> Result<()> {
    let early = style.is_early() && !space.is_null();
    let (dims, max): (&[u64], &[Option<u64>]) = match space {
        Dataspace::Simple { dims, max } => (dims, max),
        _ => (&[], &[]),
    };
    if dims.len() > crate::shape::MAX_RANK || dims.len() != max.len() {
        return Err(Error::invalid(format!("extents {dims:?} with {} maximum extents", max.len())));
    }
    let fits = |n: u64| out_of(n, out.sizes().length);
    if dims.iter().any(|&d| !fits(d)) || max.iter().flatten().any(|&d| !fits(d)) {
        return Err(Error::unsupported(format!("extents {dims:?} in lengths of this file's size")));
    }
    if dims.iter().zip(max).any(|(&d, m)| m.is_some_and(|m| m < d)) {
        return Err(Error::invalid(format!("extents {dims:?} beyond the maximum extents {max:?}")));
    }
    let flags = u8::from(!dims.is_empty());
    if early {
        out.u8(1).u8(dims.len() as u8).u8(flags).zeros(5);
    } else {
        let class = match space {
            Dataspace::Scalar => 0,
            Dataspace::Simple { .. } => 1,
            Dataspace::Null => 2,
        };
        out.u8(2).u8(dims.len() as u8).u8(flags).u8(class);
    }
    dims.iter().for_each(|&d| {
        out.length(d);
    });
    max.iter().for_each(|m| {
        out.length(m.unwrap_or(UNDEFINED));
    });
    Ok(())
}

/// Whether `n` is a number that a field of `width` bytes holds, and not the one that stands for "unlimited".
fn out_of(n: u64, width: u8) -> bool {
    match width {
        w @ 0..8 => n < (1u64 << (8 * u32::from(w))) - 1,
        _ => n < UNDEFINED,
    }
}

/// The fill value message.
pub(super) fn fill(out: &mut Encoder, fill: &Fill, style: Style<'_>) -> Result<()> {
    let allocation = match fill.allocation {
        AllocationTime::Default => 0,
        AllocationTime::Early => 1,
        AllocationTime::Late => 2,
        AllocationTime::Incremental => 3,
    };
    let time = match fill.time {
        FillTime::Allocation => 0,
        FillTime::Never => 1,
        FillTime::IfSet => 2,
    };
    let value: &[u8] = match &fill.value {
        FillValue::Value(value) => value,
        _ => &[],
    };
    let size = u32::try_from(value.len()).map_err(|_| Error::unsupported("a fill value of 4 GiB"))?;
    let undefined = fill.value == FillValue::Undefined;
    if style.is_early() {
        out.u8(2).u8(allocation).u8(time).u8(u8::from(!undefined));
        if !undefined {
            out.u32(size).put(value);
        }
        return Ok(());
    }
    let state = if undefined {
        0x10
    } else if size > 0 {
        0x20
    } else {
        0
    };
    out.u8(3).u8(allocation | time << 2 | state);
    if size > 0 {
        out.u32(size).put(value);
    }
    Ok(())
}

/// The filter pipeline message.
pub(super) fn filters(out: &mut Encoder, filters: &[FilterSpec], style: Style<'_>) -> Result<()> {
    let early = style.is_early();
    if filters.len() > 32 {
        return Err(Error::unsupported(format!("{} filters, HDF5 has 32 at most", filters.len())));
    }
    out.u8(if early { 1 } else { 2 }).u8(filters.len() as u8).zeros(if early { 6 } else { 0 });
    for filter in filters {
        let FilterSpec::Hdf5 { id, flags, name, parameters } = filter else {
            return Err(Error::invalid("a filter that is not spelled as HDF5 does"));
        };
        let count = u16::try_from(parameters.len());
        let named = early || *id >= 256;
        // The name with its NUL; none at all if it is empty.
        let mut text = name.as_bytes().to_vec();
        if !text.is_empty() {
            text.push(0);
            if early {
                text.resize(text.len().next_multiple_of(8), 0);
            }
        }
        let (Ok(count), Ok(length)) = (count, u16::try_from(text.len())) else {
            return Err(Error::unsupported(format!("filter {id} with more than 65535 parameters")));
        };
        out.u16(*id);
        if named {
            out.u16(length);
        }
        out.u16(*flags).u16(count);
        if named {
            out.put(&text);
        }
        parameters.iter().for_each(|&p| {
            out.u32(p);
        });
        if early && count % 2 == 1 {
            out.u32(0);
        }
    }
    Ok(())
}

/// The data layout message in `version` 3 to 5.
pub(super) fn layout(out: &mut Encoder, class: &LayoutClass, version: u8) -> Result<()> {
    match class {
        LayoutClass::Compact(bytes) => {
            let size = u16::try_from(bytes.len())
                .map_err(|_| Error::unsupported("compact data of more than 65535 bytes"))?;
            out.u8(version).u8(0).u16(size).put(bytes);
        }
        LayoutClass::Contiguous { address, size } => {
            out.u8(version).u8(1).address(*address).length(size.unwrap_or(0));
        }
        LayoutClass::Virtual { address, index } => {
            out.u8(version.max(4)).u8(3).address(*address).u32(*index);
        }
        LayoutClass::Chunked(chunked) => chunks(out, chunked, version)?,
    }
    Ok(())
}

fn chunks(out: &mut Encoder, chunked: &Chunked, version: u8) -> Result<()> {
    let extents = || chunked.chunk.iter().copied().chain([chunked.element_size]);
    let fields = chunked.chunk.len() as u8 + 1;
    if chunked.index == IndexKind::BtreeV1 {
        out.u8(3).u8(2).u8(fields).address(chunked.address);
        for extent in extents() {
            let extent = u32::try_from(extent)
                .map_err(|_| Error::unsupported(format!("a chunk extent of {extent} in HDF5")))?;
            out.u32(extent);
        }
        return Ok(());
    }
    let filtered_single = matches!(chunked.index, IndexKind::Single { filtered: Some(_) });
    let flags = u8::from(chunked.edge_unfiltered) | u8::from(filtered_single) << 1;
    let width = width_of(extents().max().unwrap_or(1));
    out.u8(version.max(4)).u8(2).u8(flags).u8(fields).u8(width as u8);
    extents().for_each(|extent| {
        out.uint(extent, width);
    });
    match chunked.index {
        IndexKind::BtreeV1 => {}
        IndexKind::Single { filtered } => {
            out.u8(1);
            if let Some((length, mask)) = filtered {
                out.length(length).u32(mask);
            }
        }
        IndexKind::Implicit => {
            out.u8(2);
        }
        IndexKind::FixedArray { page_bits } => {
            out.u8(3).u8(page_bits);
        }
        IndexKind::ExtensibleArray { max_bits, index_elements, min_pointers, min_elements, page_bits } => {
            out.u8(4).u8(max_bits).u8(index_elements).u8(min_pointers).u8(min_elements).u8(page_bits);
        }
        IndexKind::BtreeV2 { node_size, split, merge } => {
            out.u8(5).u32(node_size).u8(split).u8(merge);
        }
    }
    out.address(chunked.address);
    Ok(())
}

/// Whether the text has characters beyond ASCII and is UTF-8: said beside names.
fn is_utf8(name: &Name) -> bool {
    !name.as_bytes().is_ascii() && name.as_str().is_some()
}

/// The link message. A hard link leads to the object header at `address`.
pub(super) fn link(
    out: &mut Encoder,
    name: &Name,
    target: &LinkTarget,
    address: u64,
    order: Option<i64>,
) -> Result<()> {
    let bytes = name.as_bytes();
    let class = match target {
        LinkTarget::Hard(_) => 0,
        LinkTarget::Soft(_) => 1,
        LinkTarget::External { .. } => 64,
        LinkTarget::UserDefined { class, .. } => *class,
    };
    // Widths of 1, 2, 4 and 8 bytes.
    let code = match bytes.len() {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        _ => 2,
    };
    let utf8 = is_utf8(name);
    let bits = [(order.is_some(), 0x04), (class != 0, 0x08), (utf8, 0x10)];
    out.u8(1).u8(bits.iter().filter(|(on, _)| *on).fold(code, |flags, (_, bit)| flags | bit));
    if class != 0 {
        out.u8(class);
    }
    if let Some(order) = order {
        out.u64(order as u64);
    }
    if utf8 {
        out.u8(1);
    }
    out.uint(bytes.len() as u64, 1 << code).put(bytes);
    let sized = |out: &mut Encoder, value: &[u8]| -> Result<()> {
        let length = u16::try_from(value.len())
            .map_err(|_| Error::unsupported(format!("link {name} with a value of more than 65535 bytes")))?;
        out.u16(length).put(value);
        Ok(())
    };
    match target {
        LinkTarget::Hard(_) => {
            out.address(address);
            Ok(())
        }
        LinkTarget::Soft(path) => sized(out, path.as_bytes()),
        LinkTarget::External { file, path } => {
            // Version and flags, then two texts.
            let mut value = vec![0];
            for text in [file, path] {
                value.extend_from_slice(text.as_bytes());
                value.push(0);
            }
            sized(out, &value)
        }
        LinkTarget::UserDefined { data, .. } => sized(out, data),
    }
}

/// Where links or attributes are, and in which order they came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// The number that the next one gets, where the order of creation is tracked.
    pub(super) next: Option<u64>,
    /// Fractal heap.
    pub(super) heap: u64,
    /// B-tree over the names.
    pub(super) names: u64,
    /// B-tree over the order of creation, where it is tracked.
    pub(super) order: u64,
}

impl Places {
    /// Everything in the object header.
    pub(super) fn compact(next: Option<u64>) -> Self {
        Places { next, heap: UNDEFINED, names: UNDEFINED, order: UNDEFINED }
    }
}

/// The link info message.
pub(super) fn link_info(out: &mut Encoder, places: &Places) {
    out.u8(0).u8(if places.next.is_some() { 0x03 } else { 0 });
    if let Some(next) = places.next {
        out.u64(next);
    }
    out.address(places.heap).address(places.names);
    if places.next.is_some() {
        out.address(places.order);
    }
}

/// The attribute info message.
pub(super) fn attribute_info(out: &mut Encoder, places: &Places) {
    out.u8(0).u8(if places.next.is_some() { 0x03 } else { 0 });
    if let Some(next) = places.next {
        out.u16(next.min(0xffff) as u16);
    }
    out.address(places.heap).address(places.names);
    if places.next.is_some() {
        out.address(places.order);
    }
}

/// What an attribute message is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeParts<'a> {
    pub(super) name: &'a Name,
    /// The datatype message, or where the committed type is.
    pub(super) datatype: &'a [u8],
    /// Whether it is a committed type.
    pub(super) shared: bool,
    pub(super) dataspace: &'a [u8],
    pub(super) data: &'a [u8],
}

/// The attribute message: version 3, or in early files 1, or 2 if the type is committed.
pub(super) fn attribute(out: &mut Encoder, parts: AttributeParts<'_>, style: Style<'_>) -> Result<()> {
    let AttributeParts { name, datatype, shared, dataspace, data } = parts;
    let utf8 = is_utf8(name);
    let version = match (style.is_early(), utf8, shared) {
        (false, ..) | (_, true, _) => 3,
        (_, _, true) => 2,
        _ => 1,
    };
    let sizes = [name.as_bytes().len() + 1, datatype.len(), dataspace.len()];
    out.u8(version).u8(u8::from(shared));
    for size in sizes {
        let size = u16::try_from(size)
            .map_err(|_| Error::unsupported(format!("attribute {name}: its name or type is too long")))?;
        out.u16(size);
    }
    if version == 3 {
        out.u8(u8::from(utf8));
    }
    let name = [name.as_bytes(), &[0]].concat();
    for part in [&name, datatype, dataspace] {
        out.put(part);
        if version == 1 {
            out.zeros(part.len().next_multiple_of(8) - part.len());
        }
    }
    out.put(data);
    Ok(())
}

/// The external data files message: names at offsets of the local heap at `heap`.
pub(super) fn external(out: &mut Encoder, heap: u64, slots: &[(u64, u64, Option<u64>)]) -> Result<()> {
    let count =
        u16::try_from(slots.len()).map_err(|_| Error::unsupported("more than 65535 external data files"))?;
    out.u8(1).zeros(3).u16(count).u16(count).address(heap);
    for (name, offset, size) in slots {
        out.length(*name).length(*offset).length(size.unwrap_or(UNDEFINED));
    }
    Ok(())
}
