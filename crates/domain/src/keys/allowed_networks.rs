//! The networks from which a key is accepted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::network::{Network, NetworkError};

/// The word for no limit.
const ANY: &str = "any";
/// In the audit log, between the name of a new key and its networks.
const ONLY_FROM: &str = ": only from ";

/// The networks from which a key is accepted. An empty list is no limit: the key is accepted from any address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedNetworks(Vec<Network>);

impl AllowedNetworks {
    /// Enough for the offices and providers of a clinic; each request with the key is compared with all of them.
    pub const MAX: usize = 20;

    /// Returns whether the key is accepted from everywhere.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the key is accepted from this address; where a list is set, not from an unknown one.
    #[must_use]
    pub fn allow(&self, address: Option<IpAddr>) -> bool {
        self.are_any() || address.is_some_and(|address| self.0.iter().any(|network| network.contains(address)))
    }

    /// Returns what the audit log says of a new key with this name: the name, and the networks if there are any. So
    /// that both can be told apart again, they also follow a name that looks as if they did.
    #[must_use]
    pub fn after_name(&self, name: &str) -> String {
        let is_clear = self.are_any() && !name.contains(ONLY_FROM);
        if is_clear { name.to_owned() } else { format!("{name}{ONLY_FROM}{self}") }
    }

    /// The name and the networks that [`Self::after_name`] has joined.
    #[must_use]
    pub fn split_name(text: &str) -> (&str, Self) {
        let parts = text.rsplit_once(ONLY_FROM).and_then(|(name, networks)| Some((name, networks.parse().ok()?)));
        parts.unwrap_or_else(|| (text, Self::default()))
    }

    /// The networks, none for any.
    #[must_use]
    pub fn as_slice(&self) -> &[Network] {
        &self.0
    }
}

impl From<Vec<Network>> for AllowedNetworks {
    fn from(mut networks: Vec<Network>) -> Self {
        networks.sort();
        networks.dedup();
        Self(networks)
    }
}

/// Reason why a text is no list of networks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AllowedNetworksError {
    /// Parts of the text are no networks.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Networks(Vec<NetworkError>),
    /// There are more than [`AllowedNetworks::MAX`].
    #[error("there are more than {} networks", AllowedNetworks::MAX)]
    TooMany,
}

impl FromStr for AllowedNetworks {
    type Err = AllowedNetworksError;

    /// Reads networks between commas, semicolons, spaces or line breaks. Nothing, or the word `any`, is no limit.
    fn from_str(text: &str) -> Result<Self, AllowedNetworksError> {
        let words = text.split(|letter: char| matches!(letter, ',' | ';') || letter.is_whitespace());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        if words == [ANY] {
            return Ok(Self::default());
        }
        let (mut networks, mut wrong) = (Vec::new(), Vec::new());
        for word in words {
            word.parse::<Network>().map_or_else(|error| wrong.push(error), |network| networks.push(network));
        }
        if !wrong.is_empty() {
            return Err(AllowedNetworksError::Networks(wrong));
        }
        let networks = Self::from(networks);
        if networks.0.len() > Self::MAX { Err(AllowedNetworksError::TooMany) } else { Ok(networks) }
    }
}

impl fmt::Display for AllowedNetworks {
    /// The list as it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.are_any() {
            return f.write_str(ANY);
        }
        for (index, network) in self.0.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            if network.is_single() { write!(f, "{}", network.address())? } else { write!(f, "{network}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<AllowedNetworks>().map(|read| read.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_and_networks_are_joined_and_told_apart_again() {
        let networks: AllowedNetworks = "203.0.113.7, 2001:db8::/32".parse().unwrap();
        assert_eq!(networks.after_name("Front desk"), "Front desk: only from 203.0.113.7, 2001:db8::/32");
        for name in ["Front desk", "a: b", "a: only from 10.0.0.0/8", ": only from ", "x: only from any"] {
            for networks in [AllowedNetworks::default(), networks.clone()] {
                let joined = networks.after_name(name);
                assert_eq!(AllowedNetworks::split_name(&joined), (name, networks), "{joined}");
            }
        }
        assert_eq!(AllowedNetworks::default().after_name("Front desk"), "Front desk");
    }

    #[test]
    fn a_list_is_read_between_any_separators_and_written_in_one_form() {
        for (text, written) in [
            ("", "any"),
            (" \r\n,", "any"),
            ("any", "any"),
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7/32,203.0.113.7", "203.0.113.7"),
            ("2001:DB8::/32\r\n10.0.0.0/8; ".trim_end_matches("; "), "10.0.0.0/8, 2001:db8::/32"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("0.0.0.0/0 ::/0", "0.0.0.0/0, ::/0"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(written), "{text:?}");
            assert_eq!(read(written).as_deref(), Ok(written));
        }
    }

    #[test]
    fn what_is_no_network_is_refused_with_what_to_write() {
        for text in
            ["office", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0", "fe80::1%eth0", "::/129", "any, 10.0.0.1"]
        {
            assert!(read(text).unwrap_err().contains("is neither an address such as"), "{text}");
        }
        let all_wrong = read("my, 203.0.113.7; 10.0.0.0/99").unwrap_err();
        assert!(all_wrong.contains("“my” is neither") && all_wrong.contains("; “10.0.0.0/99” is"), "{all_wrong}");
        let said = read("203.0.113.7/24").unwrap_err();
        assert_eq!(
            said,
            "“203.0.113.7/24” doesn't begin a network: write 203.0.113.0/24 for the network, or the address alone"
        );
        let many = |count: usize| (0..count).map(|last| format!("10.0.0.{last} ")).collect::<String>();
        assert!(read(&many(20)).is_ok());
        assert_eq!(read(&many(21)), Err("there are more than 20 networks".to_owned()));
    }

    #[test]
    fn an_address_is_allowed_in_either_way_of_writing_it() {
        let networks: AllowedNetworks = "203.0.113.0/24, 2001:db8::/32, 0.0.0.0/32".parse().unwrap();
        for (address, is_allowed) in [
            ("203.0.113.255", true),
            ("::ffff:203.0.113.1", true),
            ("203.0.114.0", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::", false),
        ] {
            assert_eq!(networks.allow(Some(address.parse().unwrap())), is_allowed, "{address}");
        }
        assert!(!networks.allow(None) && AllowedNetworks::default().allow(None));
        let all: AllowedNetworks = "0.0.0.0/0".parse().unwrap();
        assert!(all.allow(Some([203, 0, 113, 1].into())) && !all.allow(Some("2001:db8::1".parse().unwrap())));
    }
}
