//! Values that are left out of a line.

pub(super) const fn is_false(flag: &bool) -> bool {
    !*flag
}

pub(super) const fn is_zero(number: &u8) -> bool {
    *number == 0
}

pub(super) const fn one() -> u32 {
    1
}

pub(super) const fn is_one(number: &u32) -> bool {
    *number == 1
}
