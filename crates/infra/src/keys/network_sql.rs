//! Addresses and networks as PostgreSQL's `inet` and `cidr`, in the binary form of both: family, bits, whether it is a
//! network, and the address.

use std::io::Write;
use std::net::IpAddr;

use diesel::backend::Backend;
use diesel::deserialize::{FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::pg::Pg;
use diesel::serialize::{IsNull, Output, Result, ToSql};
use diesel::sql_types::{Cidr, Inet};
use intake_domain::{AllowedNetworks, Network};

/// PostgreSQL's numbers of the families.
const V4: u8 = 2;
const V6: u8 = 3;

/// An address.
#[derive(Clone, Copy, Debug, AsExpression)]
#[diesel(sql_type = Inet)]
pub(crate) struct SqlAddress(pub(crate) IpAddr);

/// A network.
#[derive(Clone, Copy, Debug, AsExpression, FromSqlRow)]
#[diesel(sql_type = Cidr)]
pub(crate) struct SqlNetwork(pub(crate) Network);

/// The column as it is stored: NULL is no limit, so that the insert of a patient compares nothing.
pub(crate) type Stored = Option<Vec<SqlNetwork>>;

impl ToSql<Inet, Pg> for SqlAddress {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> Result {
        write(out, self.0, if self.0.is_ipv4() { 32 } else { 128 }, false)
    }
}

impl ToSql<Cidr, Pg> for SqlNetwork {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> Result {
        write(out, self.0.address(), self.0.length(), true)
    }
}

fn write(out: &mut Output<'_, '_, Pg>, address: IpAddr, bits: u8, is_network: bool) -> Result {
    match address {
        IpAddr::V4(address) => {
            out.write_all(&[V4, bits, is_network.into(), 4])?;
            out.write_all(&address.octets())?;
        }
        IpAddr::V6(address) => {
            out.write_all(&[V6, bits, is_network.into(), 16])?;
            out.write_all(&address.octets())?;
        }
    }
    Ok(IsNull::No)
}

impl FromSql<Cidr, Pg> for SqlNetwork {
    fn from_sql(bytes: <Pg as Backend>::RawValue<'_>) -> diesel::deserialize::Result<Self> {
        let (&[_, bits, _, _], address) = bytes.as_bytes().split_first_chunk().ok_or("a network without an address")?;
        let address = match <[u8; 4]>::try_from(address) {
            Ok(address) => IpAddr::from(address),
            Err(_) => IpAddr::from(<[u8; 16]>::try_from(address)?),
        };
        Ok(Self(Network::around(address, bits)))
    }
}

/// The networks as the column holds them.
pub(crate) fn stored(networks: &AllowedNetworks) -> Stored {
    let all = networks.as_slice().iter().copied().map(SqlNetwork);
    (!networks.are_any()).then(|| all.collect())
}

/// The networks that the column holds.
pub(crate) fn read(stored: Stored) -> AllowedNetworks {
    stored.unwrap_or_default().into_iter().map(|SqlNetwork(network)| network).collect::<Vec<_>>().into()
}
