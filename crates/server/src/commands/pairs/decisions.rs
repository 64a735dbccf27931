//! The file of pairs that people have decided to be two persons: two ids in each line.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use intake_domain::PatientId;

use crate::export::unfinished_file::{UnfinishedFile, regular_file};

const OPTION: &str = "--decided";

pub(super) struct Decisions {
    path: PathBuf,
    pairs: BTreeSet<[PatientId; 2]>,
}

impl Decisions {
    /// Reads the file. Where there is none, nothing was decided.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = regular_file(OPTION, path)?;
        let about = || format!("{OPTION}: {}", path.display());
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(about)?,
        };
        let pair = |(number, line): (usize, &str)| {
            let ids = line.split_once(' ').and_then(|(one, other)| Some([one.parse().ok()?, other.parse().ok()?]));
            ids.map(sorted).with_context(|| format!("{}: line {number} is not two ids", about()))
        };
        let pairs = (1..).zip(text.lines()).map(pair).collect::<anyhow::Result<_>>()?;
        Ok(Self { path, pairs })
    }

    pub(super) fn contain(&self, ids: [PatientId; 2]) -> bool {
        self.pairs.contains(&sorted(ids))
    }

    /// Adds a pair to the file.
    pub(super) fn add(&self, ids: [PatientId; 2]) -> anyhow::Result<()> {
        ensure!(ids[0] != ids[1], "--not: give two different ids");
        let mut file = UnfinishedFile::create(OPTION, self.path.clone())?;
        // Another run may have added one since.
        let mut pairs = Self::open(&self.path)?.pairs;
        pairs.insert(sorted(ids));
        for [one, other] in &pairs {
            file.write(&format!("{one} {other}\n"))?;
        }
        file.finish()
    }
}

fn sorted(mut ids: [PatientId; 2]) -> [PatientId; 2] {
    ids.sort();
    ids
}
