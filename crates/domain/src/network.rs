//! The network an address belongs to: used wherever attempts are counted by where they come from, and for the networks
//! from which a key is accepted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Bits before the IPv4 address in an IPv6 address that stands for it.
const MAPPED: u8 = 96;

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
        Self::of(address, 32, 64)
    }

    /// The addresses that one subscriber is given over time: the /24 of IPv4 from which the provider takes them, or a
    /// /64 of IPv6.
    #[must_use]
    pub fn of_neighbours(address: Option<IpAddr>) -> Self {
        Self::of(address, 24, 64)
    }

    /// The addresses that one customer can have at once: the /48 of IPv6 that a site is given, or a /24 of IPv4.
    #[must_use]
    pub fn of_site(address: Option<IpAddr>) -> Self {
        Self::of(address, 24, 48)
    }

    /// All clients whose address is unknown count as one network.
    fn of(address: Option<IpAddr>, v4_length: u8, v6_length: u8) -> Self {
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical();
        Self::around(address, if address.is_ipv4() { v4_length } else { v6_length })
    }

    /// The network of this many bits that the address lies in.
    #[must_use]
    pub fn around(address: IpAddr, length: u8) -> Self {
        match address {
            IpAddr::V4(address) => {
                let length = length.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                Self { address: Ipv4Addr::from_bits(address.to_bits() & mask).into(), length }
            }
            IpAddr::V6(address) => {
                let length = length.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                Self { address: Ipv6Addr::from_bits(address.to_bits() & mask).into(), length }
            }
        }
    }

    /// The first address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns how many bits all of its addresses share.
    #[must_use]
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Returns whether the address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Self::around(address, self.length) == *self
    }

    /// Returns whether it is one address.
    pub(crate) fn is_single(&self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }
}

/// Reason why a text is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum NetworkError {
    /// It is neither an address nor a network.
    #[error("“{0}” is neither an address such as 203.0.113.7 nor a network such as 203.0.113.0/24 or 2001:db8::/32")]
    Malformed(String),
    /// It is an address within a network, not the network.
    #[error("“{0}” doesn't begin a network: write {1} for the network, or the address alone")]
    NotItsBeginning(String, Network),
}

impl FromStr for Network {
    type Err = NetworkError;

    /// Reads an address or a network. IPv4 that is written as IPv6 becomes IPv4.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let malformed = || NetworkError::Malformed(text.chars().take(60).collect());
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let written: IpAddr = address.parse().map_err(|_| malformed())?;
        let most = if written.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                digits.parse().ok().filter(|length| *length <= most).ok_or_else(malformed)?
            }
            Some(_) => return Err(malformed()),
        };
        let (address, length) = match written.to_canonical() {
            address if address.is_ipv4() && written.is_ipv6() && length >= MAPPED => (address, length - MAPPED),
            _ => (written, length),
        };
        let network = Self::around(address, length);
        if network.address == address {
            Ok(network)
        } else {
            Err(NetworkError::NotItsBeginning(text.to_owned(), network))
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
