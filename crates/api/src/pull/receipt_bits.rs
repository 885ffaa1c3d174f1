//! The random bits of the receipts that consumers get. Where callers need keys, half of them are a tag of the tenant, so
//! that a receipt is of no use to another tenant which has got hold of it, and no call to the store is needed to know.

use ringback_core::job::Tenant;
use ringback_secrets::RootKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptBits(pub(crate) [u8; 8]);

impl ReceiptBits {
    /// The bits of a tenant's receipt. With a root key, the last four bytes are the tag, else all are random.
    pub(crate) fn new(root: Option<&RootKey>, tenant: Option<&Tenant>, random: [u8; 8]) -> Self {
        let Some(root) = root else { return Self(random) };
        let [a, b, c, d, ..] = random;
        let [e, f, g, h] = root.tag(tenant.map_or("", Tenant::as_str), [a, b, c, d]);
        Self([a, b, c, d, e, f, g, h])
    }

    /// Whether the bits have the tag of this tenant.
    pub(crate) fn are_of(self, root: &RootKey, tenant: Option<&Tenant>) -> bool {
        Self::new(Some(root), tenant, self.0) == self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_of_the_tenant_that_they_were_made_for() {
        let root: RootKey = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let tenants = [None, Some("acme".parse::<Tenant>().unwrap()), Some("bcme".parse().unwrap())];
        for made_for in &tenants {
            let bits = ReceiptBits::new(Some(&root), made_for.as_ref(), [7; 8]);
            for tenant in &tenants {
                assert_eq!(bits.are_of(&root, tenant.as_ref()), made_for == tenant);
            }
        }
        assert_eq!(ReceiptBits::new(None, None, [7; 8]), ReceiptBits([7; 8]));
    }
}
