//! Imports have a direction: no files of a crate import each other in a circle, and no folders either. Reads the
//! imports of every file, tests aside.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking and say why"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module from the root of its crate.
type Module = Vec<String>;

/// One crate: its modules, what they import, and what each passes on under its own name.
#[derive(Default)]
struct Crate {
    sources: BTreeMap<Module, String>,
    passed_on: BTreeMap<(Module, String), Vec<String>>,
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let mut found = Self::default();
        found.read_folder(folder, &[]);
        let sources: Vec<_> = found.sources.clone().into_iter().collect();
        for (module, source) in sources {
            for statement in source.split("pub use ").chain(source.split("pub(crate) use ")).skip(1) {
                let mut paths = Vec::new();
                tree(statement, &[], &mut paths);
                for path in paths {
                    let target = found.absolute(&module, &path);
                    let Some(name) = target.last().cloned() else { continue };
                    found.passed_on.insert((module.clone(), name), target);
                }
            }
        }
        found
    }

    fn read_folder(&mut self, folder: &Path, module: &[String]) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
            let inner = [module, std::slice::from_ref(&name)].concat();
            if entry.is_dir() {
                self.read_folder(&entry, &inner);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let own = if ["lib", "main", "mod"].contains(&name.as_str()) { module.to_vec() } else { inner };
                let source = fs::read_to_string(&entry).unwrap();
                let code = source.split("#[cfg(test)]\nmod ").next().unwrap();
                let lines = code.lines().map(|line| line.split("//").next().unwrap());
                self.sources.insert(own, lines.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    /// A path that begins in this module, from the root of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Vec<String> {
        match path.first().map(String::as_str) {
            Some("crate") => path[1..].to_vec(),
            Some("self") => [module, &path[1..]].concat(),
            Some("super") => {
                self.absolute(&module[..module.len().saturating_sub(1)], &[&["self".into()], &path[1..]].concat())
            }
            _ => [module, path].concat(),
        }
    }

    /// The file that a path leads to, through what other files pass on.
    fn file_of(&self, path: &[String]) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|length| self.sources.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        let passed_on = rest.first().and_then(|name| self.passed_on.get(&(module.to_vec(), name.clone())));
        match passed_on {
            Some(target) if target.as_slice() != path => self.file_of(target),
            _ => Some(module.to_vec()),
        }
    }

    /// The files that a file imports.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let source = &self.sources[module];
        let mut paths = Vec::new();
        for start in ["crate::", "super::"] {
            for (index, _) in source.match_indices(start) {
                tree(&source[index..], &[], &mut paths);
            }
        }
        // A file with modules of its own may name them without a word before.
        for (index, _) in source.match_indices("\nuse ") {
            let statement = &source[index + "\nuse ".len()..];
            let child = statement.split("::").next().unwrap_or_default();
            if self.sources.contains_key([module.as_slice(), &[child.to_owned()]].concat().as_slice()) {
                tree(statement, &[], &mut paths);
            }
        }
        let found = paths.iter().filter_map(|path| self.file_of(&self.absolute(module, path)));
        found.filter(|found| found != module).collect()
    }
}

/// Adds the paths of a tree of imports such as `a::{b, c::d}` at the beginning of a text.
fn tree(text: &str, before: &[String], paths: &mut Vec<Vec<String>>) {
    let text = text.trim_start();
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(text.len());
    let mut path = before.to_vec();
    if end > 0 && &text[..end] != "self" || before.is_empty() {
        path.push(text[..end].to_owned());
    }
    let Some(rest) = text[end..].strip_prefix("::") else { return paths.push(path) };
    let Some(inner) = rest.trim_start().strip_prefix('{') else { return tree(rest, &path, paths) };
    let (mut depth, mut start) = (0_u32, 0);
    for (index, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                if !inner[start..index].trim().is_empty() {
                    tree(&inner[start..index], &path, paths);
                }
                start = index + 1;
                if letter == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// The groups of names of which each leads to each.
fn circles(arrows: &Arrows) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(name) = next.pop() {
            next.extend(arrows.get(name).into_iter().flatten().filter(|to| reached.insert((*to).clone())));
        }
        reached
    };
    let reached: BTreeMap<_, _> = arrows.keys().map(|name| (name, reached(name))).collect();
    let is_between = |one: &String, other: &String| reached[one].contains(other) && reached[other].contains(one);
    let circle = |name: &String| -> Vec<String> {
        reached.keys().filter(|other| is_between(name, other)).map(|other| (*other).clone()).collect()
    };
    reached.keys().map(|name| circle(name)).filter(|circle| circle.len() > 1).collect()
}

/// Targets of each source.
type Arrows = BTreeMap<String, BTreeSet<String>>;

fn add(arrows: &mut Arrows, from: String, to: String) {
    arrows.entry(to.clone()).or_default();
    arrows.entry(from).or_default().insert(to);
}

/// The imports between the files, and between the folders, of all crates.
fn all_imports() -> (Arrows, Arrows) {
    let (mut files, mut folders) = (Arrows::new(), Arrows::new());
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for folder in
        fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.join("src").is_dir())
    {
        let (name, found) = (folder.file_name().unwrap().to_str().unwrap(), Crate::read(&folder.join("src")));
        let path = |module: &Module| format!("{name}/{}", module.join("/"));
        let folder_of = |module: &Module| {
            let has_files = |first: &&String| found.sources.keys().any(|other| other.len() > 1 && other[0] == **first);
            module.first().filter(has_files).map(|first| format!("{name}/{first}"))
        };
        for module in found.sources.keys() {
            for import in found.imports(module) {
                add(&mut files, path(module), path(&import));
                if let (Some(from), Some(to)) = (folder_of(module), folder_of(&import)) {
                    add(&mut folders, from, to);
                }
            }
        }
    }
    (files, folders)
}

#[test]
fn no_files_and_no_folders_import_each_other_in_a_circle() {
    let (files, folders) = all_imports();
    assert!(files.len() > 250, "imports are found: {}", files.len());
    let found: Vec<_> = circles(&files).into_iter().chain(circles(&folders)).map(|circle| circle.join(", ")).collect();
    assert_eq!(found, [""; 0], "these import each other in a circle, which one import must leave");
}

#[test]
fn circles_are_found() {
    let arrows = [("a", &["b"][..]), ("b", &["c", "d"]), ("c", &["a"]), ("d", &["e"]), ("e", &[])];
    let arrows = arrows.map(|(from, to)| (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect()));
    let found: Vec<_> = circles(&arrows.into()).into_iter().map(|circle| circle.concat()).collect();
    assert_eq!(found, ["abc"]);
    let mut paths = Vec::new();
    tree("crate::a::{b, c::{self, d}, e::F as G};", &[], &mut paths);
    let paths: Vec<_> = paths.into_iter().map(|path| path.join(" ")).collect();
    assert_eq!(paths, ["crate a b", "crate a c", "crate a c d", "crate a e F"]);
}
