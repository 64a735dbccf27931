//! Random numbers that a seed repeats (`SplitMix64`).

pub(super) struct Random(u64);

impl Random {
    /// The first numbers of neighbouring seeds are those of one sequence, which their registers would share.
    pub(super) fn new(seed: u64) -> Self {
        Self(Self(seed).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    /// As names are spread: the first are the most frequent.
    pub(super) fn pick_uneven<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let (one, other) = (self.below(from.len()), self.below(from.len()));
        from[one.min(other)]
    }

    pub(super) fn digits(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap())).collect()
    }

    pub(super) fn bytes(&mut self) -> [u8; 10] {
        std::array::from_fn(|_| u8::try_from(self.below(256)).unwrap())
    }
}
