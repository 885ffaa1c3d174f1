//! The predicate against the registry's table, written a second time: IPv4 addresses, and both sides of each boundary of
//! IPv6.

use super::*;

/// First and last address of each block of the IANA IPv4 Special-Purpose Address Registry, of 224.0.0.0/4, and the
/// address of the platform of Azure, in order and without overlaps.
const BLOCKS: [(u32, u32); 19] = [
    (0x0000_0000, 0x00ff_ffff),
    (0x0a00_0000, 0x0aff_ffff),
    (0x6440_0000, 0x647f_ffff),
    (0x7f00_0000, 0x7fff_ffff),
    (0xa83f_8110, 0xa83f_8110),
    (0xa9fe_0000, 0xa9fe_ffff),
    (0xac10_0000, 0xac1f_ffff),
    (0xc000_0000, 0xc000_00ff),
    (0xc000_0200, 0xc000_02ff),
    (0xc01f_c400, 0xc01f_c4ff),
    (0xc034_c100, 0xc034_c1ff),
    (0xc058_6300, 0xc058_63ff),
    (0xc0a8_0000, 0xc0a8_ffff),
    (0xc0af_3000, 0xc0af_30ff),
    (0xc612_0000, 0xc613_ffff),
    (0xc633_6400, 0xc633_64ff),
    (0xcb00_7100, 0xcb00_71ff),
    (0xe000_0000, 0xefff_ffff),
    (0xf000_0000, 0xffff_ffff),
];

fn check(number: u32) {
    let is_listed = BLOCKS.iter().any(|&(first, last)| (first..=last).contains(&number));
    let address = Ipv4Addr::from(number);
    assert_eq!(purpose(IpAddr::V4(address)).is_some(), is_listed, "{address}");
}

/// Both sides of each boundary, and an address of each /24, another byte in each; `RINGBACK_TEST_ADDRESSES` asks for all
/// addresses.
#[test]
fn every_ipv4_address_is_public_or_in_the_registry() {
    for (first, last) in BLOCKS {
        for number in [first.wrapping_sub(1), first, last, last.wrapping_add(1)] {
            check(number);
        }
    }
    let step = if std::env::var_os("RINGBACK_TEST_ADDRESSES").is_some() { 1 } else { 255 };
    (0..=u32::MAX).step_by(step).for_each(check);
}

#[test]
fn both_sides_of_each_boundary_of_ipv6_are_judged() {
    // First and last public address of each stretch.
    let public = [
        ("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2001:db9::", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2003::", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff"),
        ("2620:4f:8001::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ];
    let is_public = |number: u128| purpose(IpAddr::V6(Ipv6Addr::from(number))).is_none();
    let number = |text: &str| u128::from(text.parse::<Ipv6Addr>().unwrap());
    for (first, last) in public.map(|(first, last)| (number(first), number(last))) {
        assert!(is_public(first) && is_public(last), "{}", Ipv6Addr::from(first));
        assert!(!is_public(first - 1), "before {}", Ipv6Addr::from(first));
        assert!(!is_public(last + 1), "after {}", Ipv6Addr::from(last));
    }
    // Beyond these stretches nothing is public.
    for bit in 0..128 {
        let address = 1_u128 << bit;
        assert_eq!(is_public(address), bit == 125, "{}", Ipv6Addr::from(address));
    }
}

#[test]
fn isatap_is_found_in_both_forms() {
    for (address, expected) in [
        ("2606:4700::5efe:a00:1", false),
        ("2606:4700::200:5efe:a00:1", false),
        ("2606:4700::300:5efe:a00:1", true),
        ("2606:4700::5eff:a00:1", true),
    ] {
        assert_eq!(purpose(address.parse().unwrap()).is_none(), expected, "{address}");
    }
}
