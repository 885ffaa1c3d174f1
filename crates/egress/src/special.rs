//! The registry of addresses that are not public, and the IPv4 addresses inside IPv6 ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;

/// IPv4 addresses that are not public.
struct Block {
    first: u32,
    last: u32,
    purpose: &'static str,
}

const fn v4(octets: [u8; 4], length: u32, purpose: &'static str) -> Block {
    let first = u32::from_be_bytes(octets);
    let others = ((1_u64 << (32 - length)) - 1) as u32;
    assert!(first & others == 0, "an address in the network, not the network");
    Block { first, last: first | others, purpose }
}

/// IPv6 addresses that are not public.
type Network = (Ipv6Net, &'static str);

const fn v6(segments: [u16; 8], length: u8, purpose: &'static str) -> Network {
    let [a, b, c, d, e, f, g, h] = segments;
    (Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length), purpose)
}

/// The IANA IPv4 Special-Purpose Address Registry, with multicast (RFC 5771), and one address that a cloud provider
/// uses inside its machines. In their order.
const V4: [Block; 19] = [
    v4([0, 0, 0, 0], 8, "this network (RFC 791)"),
    v4([10, 0, 0, 0], 8, "private use (RFC 1918)"),
    v4([100, 64, 0, 0], 10, "shared by carriers (RFC 6598)"),
    v4([127, 0, 0, 0], 8, "loopback (RFC 1122)"),
    v4([168, 63, 129, 16], 32, "the platform of Azure"),
    v4([169, 254, 0, 0], 16, "link-local, also metadata of clouds (RFC 3927)"),
    v4([172, 16, 0, 0], 12, "private use (RFC 1918)"),
    v4([192, 0, 0, 0], 24, "protocol assignments (RFC 6890)"),
    v4([192, 0, 2, 0], 24, "documentation (RFC 5737)"),
    v4([192, 31, 196, 0], 24, "AS112 (RFC 7535)"),
    v4([192, 52, 193, 0], 24, "multicast tunnels (RFC 7450)"),
    v4([192, 88, 99, 0], 24, "6to4 relays (RFC 7526)"),
    v4([192, 168, 0, 0], 16, "private use (RFC 1918)"),
    v4([192, 175, 48, 0], 24, "AS112 (RFC 7534)"),
    v4([198, 18, 0, 0], 15, "benchmarks (RFC 2544)"),
    v4([198, 51, 100, 0], 24, "documentation (RFC 5737)"),
    v4([203, 0, 113, 0], 24, "documentation (RFC 5737)"),
    v4([224, 0, 0, 0], 4, "multicast (RFC 5771)"),
    v4([240, 0, 0, 0], 4, "reserved and broadcast (RFC 1112)"),
];

/// The only IPv6 addresses that are public, but for [`V6`] (RFC 4291).
const PUBLIC_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, "").0;

/// The IANA IPv6 Special-Purpose Address Registry within [`PUBLIC_V6`].
const V6: [Network; 5] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments, also Teredo (RFC 2928)"),
    v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation (RFC 3849)"),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4 (RFC 3056)"),
    v6([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "AS112 (RFC 7534)"),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation (RFC 9637)"),
];

/// Names for the rest of IPv6.
const NAMED_V6: [Network; 9] = [
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified (RFC 4291)"),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback (RFC 4291)"),
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "an IPv4 address (RFC 4291)"),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, "an IPv4 address (RFC 4291)"),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, "NAT64 (RFC 6052)"),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "NAT64 (RFC 8215)"),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "private use (RFC 4193)"),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local (RFC 4291)"),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast (RFC 4291)"),
];

/// What an address is for; `None` if it is public.
pub(crate) fn purpose(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => purpose_v4(address),
        IpAddr::V6(address) => purpose_v6(address),
    }
}

fn purpose_v4(address: Ipv4Addr) -> Option<&'static str> {
    let number = u32::from(address);
    let after = V4.partition_point(|block| block.first <= number);
    let block = V4[..after].last()?;
    (number <= block.last).then_some(block.purpose)
}

fn purpose_v6(address: Ipv6Addr) -> Option<&'static str> {
    let among = |networks: &[Network]| {
        networks.iter().find(|(network, _)| network.contains(&address)).map(|(_, purpose)| *purpose)
    };
    if !PUBLIC_V6.contains(&address) {
        return Some(among(&NAMED_V6).unwrap_or("outside of 2000::/3 (RFC 4291)"));
    }
    among(&V6).or_else(|| is_isatap(address).then_some("an IPv4 address, by ISATAP (RFC 5214)"))
}

fn is_isatap(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _])
}

/// The IPv4 addresses that packets to an IPv6 address may go to in the end.
pub(crate) fn inner_v4(address: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let [.., high, low] = address.segments();
    let last = of(high, low);
    let found = match address.segments() {
        // Unspecified and loopback, which look like IPv4-compatible ones.
        [0, 0, 0, 0, 0, 0, 0, _] => [None, None],
        // IPv4-compatible, IPv4-mapped, IPv4-translated, NAT64.
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] | [0x64, 0xff9b, ..] => {
            [Some(last), None]
        }
        // 6to4 has it in front.
        [0x2002, second, third, ..] => [Some(of(second, third)), None],
        // Teredo: the server, and the client with its bits inverted (RFC 4380, section 4).
        [0x2001, 0, server_high, server_low, ..] => {
            [Some(of(server_high, server_low)), Some(of(!high, !low))]
        }
        _ => [is_isatap(address).then_some(last), None],
    };
    found.into_iter().flatten()
}

#[cfg(test)]
mod tests;
