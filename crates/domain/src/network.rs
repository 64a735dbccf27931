//! The network an address belongs to: used wherever attempts are counted by where they come from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: an address with its last bits left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// The addresses that one subscriber has: one of IPv4, or a /64 of IPv6, of which they can use all 2^64.
    #[must_use]
    pub fn of_subscriber(address: Option<IpAddr>) -> Self {
        Self::of(address, 32)
    }

    /// The addresses that one subscriber is given over time: the /24 of IPv4 from which the provider takes them, or a
    /// /64 of IPv6.
    #[must_use]
    pub fn of_neighbours(address: Option<IpAddr>) -> Self {
        Self::of(address, 24)
    }

    /// All clients whose address is unknown count as one network.
    fn of(address: Option<IpAddr>, v4_length: u8) -> Self {
        match address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX << (32 - v4_length);
                Self { address: Ipv4Addr::from_bits(address.to_bits() & mask).into(), length: v4_length }
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX << 64;
                Self { address: Ipv6Addr::from_bits(address.to_bits() & mask).into(), length: 64 }
            }
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_subscriber_can_choose_among_are_one_network() {
        for (address, subscriber, neighbours) in [
            ("203.0.113.9", "203.0.113.9/32", "203.0.113.0/24"),
            ("::ffff:203.0.113.9", "203.0.113.9/32", "203.0.113.0/24"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64", "2001:db8:1:3::/64"),
        ] {
            let address = Some(address.parse().unwrap());
            assert_eq!(Network::of_subscriber(address).to_string(), subscriber);
            assert_eq!(Network::of_neighbours(address).to_string(), neighbours);
        }
        assert_eq!(Network::of_subscriber(None).to_string(), "0.0.0.0/32");
    }
}
