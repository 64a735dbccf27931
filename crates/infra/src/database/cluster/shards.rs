//! Where the patients of an organisation lie: on Citus in one shard of several, each held by a node. Never more than an
//! advice: every node takes every statement and passes it on, only slower.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};
use intake_domain::OrganisationId;
use uuid::Uuid;

use crate::database::cluster::extension::has_citus;
use crate::database::connecting::url::DatabaseUrl;

/// Beginning of the name of the function that stores patients in a shard; its number follows.
pub(crate) const STORE: &str = "store_patients_";
const SHARDS: &str =
    "SELECT shardminvalue::integer AS first, shardmaxvalue::integer AS last, nodename::text AS host, nodeport AS port,
        (SELECT shardid FROM pg_proc WHERE proname = $1 || shardid AND pronamespace = 'public'::regnamespace
            AND has_function_privilege(oid, 'EXECUTE')) AS function
    FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_node USING (groupid)
    WHERE logicalrelid = 'patients'::regclass AND shardminvalue IS NOT NULL AND noderole = 'primary'
    ORDER BY first, host, port";

/// One shard: a range of hashes, and the node that holds it.
#[derive(Clone, Debug, PartialEq, Eq, QueryableByName)]
pub(crate) struct Shard {
    #[diesel(sql_type = Integer)]
    first: i32,
    #[diesel(sql_type = Integer)]
    last: i32,
    #[diesel(sql_type = Text)]
    host: String,
    #[diesel(sql_type = Integer)]
    port: i32,
    /// The number of the function that stores patients in it. None: only Citus does.
    #[diesel(sql_type = Nullable<BigInt>)]
    function: Option<i64>,
}

impl Shard {
    /// The address of the node that holds it, with everything else as in this one. None: it must not be used.
    pub(crate) fn url(&self, url: &DatabaseUrl) -> Option<DatabaseUrl> {
        url.latest().ok()?.at(&self.host, u16::try_from(self.port).ok()?)
    }

    /// Returns how people call the node.
    pub(crate) fn node(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns whether it is the same range, wherever it lies.
    pub(crate) fn is_same_range(&self, other: &Self) -> bool {
        (self.first, self.last) == (other.first, other.last)
    }
}

/// The shards as they were last seen, in the order of their ranges; none on one PostgreSQL. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Shards(Arc<RwLock<Arc<Vec<Shard>>>>);

impl Shards {
    /// Asks the database. What is wrong until then only costs time.
    pub(crate) fn learn(&self, connection: &mut PgConnection) -> QueryResult<()> {
        let seen = if has_citus(connection)? {
            diesel::sql_query(SHARDS).bind::<Text, _>(STORE).load(connection)?
        } else {
            vec![]
        };
        if *self.all() != seen {
            self.set(seen);
        }
        Ok(())
    }

    /// The shards: the same `Arc` for as long as they are the same.
    pub(crate) fn all(&self) -> Arc<Vec<Shard>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_spread(&self) -> bool {
        !self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn set(&self, seen: Vec<Shard>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(seen);
    }

    /// The place of the shard among these that holds rows of this value, an organisation's or a key's home. None where
    /// there are no shards.
    pub(crate) fn place(shards: &[Shard], value: Uuid) -> Option<usize> {
        if shards.is_empty() {
            return None;
        }
        let hash = hash(value);
        let next = shards.partition_point(|shard| shard.last < hash);
        shards.get(next).filter(|shard| shard.first <= hash).map(|_| next)
    }

    /// The number of the function that stores the patients of all these organisations, if they lie in one shard that
    /// has one.
    pub(crate) fn function(&self, organisations: impl Iterator<Item = OrganisationId>) -> Option<i64> {
        let shards = self.all();
        if shards.is_empty() {
            return None;
        }
        let mut places = organisations.map(|organisation| Self::place(&shards, *organisation.as_uuid()));
        let first = places.next()?;
        if places.all(|place| place == first) { shards.get(first?)?.function } else { None }
    }

    /// Groups rows by the place of the shard of their value: all in one group where there are no shards.
    pub(crate) fn group<T>(
        &self,
        rows: impl IntoIterator<Item = T>,
        value: impl Fn(&T) -> Uuid,
    ) -> BTreeMap<Option<usize>, Vec<T>> {
        let mut groups: BTreeMap<_, Vec<T>> = BTreeMap::new();
        let shards = self.all();
        for row in rows {
            groups.entry(Self::place(&shards, value(&row))).or_default().push(row);
        }
        groups
    }
}

/// A value whose hash lies between these two.
pub(crate) fn value_between(first: i32, last: i32) -> Uuid {
    // About as many as there are shards must be tried.
    let mut values = (0..).map(Uuid::from_u128);
    values.find(|value| (first..=last).contains(&hash(*value))).unwrap_or_default()
}

/// PostgreSQL's `uuid_hash`, by which Citus chooses the shard: Bob Jenkins's `lookup3`, for sixteen bytes.
fn hash(value: Uuid) -> i32 {
    const LENGTH: u32 = 16;
    let mut words = value.as_bytes().chunks_exact(4).map(|bytes| match bytes {
        &[one, two, three, four] => u32::from_le_bytes([one, two, three, four]),
        _ => 0,
    });
    let mut next = || words.next().unwrap_or_default();
    let start = 0x9e37_79b9_u32.wrapping_add(LENGTH).wrapping_add(3_923_095);
    let [mut a, mut b, mut c] = [start.wrapping_add(next()), start.wrapping_add(next()), start.wrapping_add(next())];
    for (one, two, three) in [(4, 6, 8), (16, 19, 4)] {
        (a, c) = (a.wrapping_sub(c) ^ c.rotate_left(one), c.wrapping_add(b));
        (b, a) = (b.wrapping_sub(a) ^ a.rotate_left(two), a.wrapping_add(c));
        (c, b) = (c.wrapping_sub(b) ^ b.rotate_left(three), b.wrapping_add(a));
    }
    a = a.wrapping_add(next());
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    c.cast_signed()
}

#[cfg(test)]
mod tests {
    use intake_test_support::TestDatabase;

    use super::*;

    fn shards(ranges: &[(i32, i32)]) -> Shards {
        let shard = |(first, last): &(i32, i32)| Shard {
            first: *first,
            last: *last,
            host: "node".into(),
            port: 5432,
            function: None,
        };
        let shards = Shards::default();
        shards.set(ranges.iter().map(shard).collect());
        shards
    }

    #[test]
    fn the_hash_is_postgresqls() {
        #[derive(QueryableByName)]
        struct Hashed {
            #[diesel(sql_type = diesel::sql_types::Uuid)]
            id: Uuid,
            #[diesel(sql_type = Integer)]
            hash: i32,
        }

        let database = TestDatabase::new();
        let query = "SELECT id, uuid_hash(id) AS hash FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, 1000)
            UNION ALL SELECT '00000000-0000-0000-0000-000000000000' UNION ALL SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff') AS ids";
        let hashed: Vec<Hashed> = diesel::sql_query(query).load(&mut database.connect()).unwrap();
        assert_eq!(hashed.len(), 1002);
        for Hashed { id, hash: expected } in hashed {
            assert_eq!(hash(id), expected, "{id}");
        }
    }

    #[test]
    fn every_organisation_is_in_the_shard_of_its_hash() {
        let middle = [(i32::MIN, -1), (0, i32::MAX)];
        for number in 0..100_u128 {
            let organisation = Uuid::from_u128(number);
            let expected = usize::from(hash(organisation) >= 0);
            assert_eq!(Shards::place(&shards(&middle).all(), organisation), Some(expected));
            assert_eq!(Shards::place(&shards(&[]).all(), organisation), None, "one PostgreSQL");
            let is_known = hash(organisation) >= 0;
            assert_eq!(
                Shards::place(&shards(&middle[1..]).all(), organisation),
                is_known.then_some(0),
                "a range that nobody holds"
            );
        }
    }

    #[test]
    fn rows_are_grouped_by_shard() {
        let organisations: Vec<Uuid> = (0..100).map(Uuid::from_u128).collect();
        let groups =
            shards(&[(i32::MIN, -1), (0, i32::MAX)]).group(organisations.clone(), |organisation| *organisation);
        assert_eq!(groups.len(), 2);
        for group in groups.into_values() {
            assert!(group.windows(2).all(|pair| (hash(pair[0]) < 0) == (hash(pair[1]) < 0)));
        }
        assert_eq!(shards(&[]).group(organisations, |organisation| *organisation).len(), 1);
    }
}
