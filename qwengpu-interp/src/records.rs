//! The records that report the effect of an instruction.

use qwengpu_isa::{LaneMask, Record};

/// The records of results, given by ascending lane.
///
/// At each byte position, lanes with equal bytes form a group; groups are ordered by their lowest lane, and each is a
/// `VAL`. Groups of zero are spoken at position 0 only. One `RAMP` stands for position 0 if all `lanes` of the warp have
/// a result and the bytes rise by one from lane to lane. One `FILL` behind everything stands for positions 1 to 3 of the
/// lanes in which all of these are 255.
pub(crate) fn value_records(results: &[(u8, u32)], lanes: u16) -> Vec<Record> {
    let mut records = Vec::new();
    let ramp = ramp(results, lanes);
    records.extend(ramp.map(|byte| Record::Ramp { byte }));
    let is_filled = |value: u32| value & Record::FILLED == Record::FILLED;
    for position in u8::from(ramp.is_some())..4 {
        let byte_of = |value: u32| value.to_le_bytes()[usize::from(position)];
        let spoken: Vec<(u8, u8)> = results
            .iter()
            .filter(|&&(_, value)| position == 0 || byte_of(value) != 0 && !is_filled(value))
            .map(|&(lane, value)| (lane, byte_of(value)))
            .collect();
        let mut done = LaneMask::EMPTY;
        for &(lane, byte) in &spoken {
            if !done.contains(lane) {
                let mask: LaneMask = spoken.iter().filter(|(_, other)| *other == byte).map(|&(lane, _)| lane).collect();
                done = LaneMask::new(done.bits() | mask.bits());
                records.push(Record::Val { mask, position, byte });
            }
        }
    }
    let mask: LaneMask = results.iter().filter(|(_, value)| is_filled(*value)).map(|&(lane, _)| lane).collect();
    if !mask.is_empty() {
        records.push(Record::Fill { mask });
    }
    records
}

/// The lowest byte of lane 0, if there are other lanes, all of which have a result, and their bytes are one more each.
fn ramp(results: &[(u8, u32)], lanes: u16) -> Option<u8> {
    let bytes: Vec<u8> = results.iter().map(|(_, value)| value.to_le_bytes()[0]).collect();
    let rises = bytes.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    (rises && lanes > 1 && bytes.len() == usize::from(lanes)).then(|| bytes.first().copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(results: &[(u8, u32)], expected: &str) {
        let text: Vec<String> = value_records(results, 4).iter().map(Record::to_string).collect();
        assert_eq!(text, expected.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn groups() {
        check(&[], "");
        check(&[(2, 0)], "<|val:4:0:00|>");
        check(&[(0, 7), (1, 7), (2, 7), (3, 7)], "<|val:f:0:07|>");
        check(&[(0, 7), (1, 8), (2, 9), (3, 10)], "<|ramp:07|>");
        check(&[(0, 0x107), (1, 8), (2, 9), (3, 0x10a)], "<|ramp:07|> <|val:9:1:01|>");
        assert_eq!(value_records(&[(0, 7)], 1), [Record::Val { mask: LaneMask::new(1), position: 0, byte: 7 }]);
        check(&[(0, 7), (1, 8), (2, 9)], "<|val:1:0:07|> <|val:2:0:08|> <|val:4:0:09|>");
        check(&[(0, 253), (1, 254), (2, 255), (3, 0)], "<|val:1:0:fd|> <|val:2:0:fe|> <|val:4:0:ff|> <|val:8:0:00|>");
        check(&[(0, 1), (1, 0), (2, 1), (3, 0)], "<|val:5:0:01|> <|val:a:0:00|>");
        check(&[(0, u32::MAX), (2, 0xffff_ff00)], "<|val:1:0:ff|> <|val:4:0:00|> <|fill:5|>");
        // A lane that is filled is in no group, even of bytes that it has.
        check(
            &[(0, 0xffff_ff02), (1, 0x00ff_ff02), (2, 0xffff_ff03), (3, 0x00ff_0002)],
            "<|val:b:0:02|> <|val:4:0:03|> <|val:2:1:ff|> <|val:a:2:ff|> <|fill:5|>",
        );
        check(
            &[(0, 0xffff_fffe), (1, 0xffff_ffff), (2, 0), (3, 1)],
            "<|val:1:0:fe|> <|val:2:0:ff|> <|val:4:0:00|> <|val:8:0:01|> <|fill:3|>",
        );
        check(
            &[(0, 0x0100), (1, 0x0201), (3, 0x8000_0100)],
            "<|val:9:0:00|> <|val:2:0:01|> <|val:9:1:01|> <|val:2:1:02|> <|val:8:3:80|>",
        );
    }
}
