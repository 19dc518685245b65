//! Reads rows from the pages of a SQLite file without SQLite, which stops at the first damaged page.
//!
//! The [format](https://www.sqlite.org/fileformat2.html): a table is a tree of pages. Interior pages list their
//! children, and leaf pages have the rows, whose ends may continue on a chain of overflow pages.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::record::{decode, varint};
use crate::database::sql::Cell;

/// The size of the pages of every store.
pub(super) const PAGE_SIZE: usize = 4096;

/// The first page begins with the header of the file.
const FILE_HEADER_SIZE: usize = 100;

/// The pages of a file. Pages are counted from 1.
pub(super) struct PageFile {
    file: RefCell<File>,
    n_pages: u32,
}

/// A row of a table with its key, or an entry of an index without one.
pub(super) struct Row {
    pub(super) key: Option<i64>,
    pub(super) cells: Vec<Cell>,
}

impl Row {
    /// The values of all columns. A table with a key stores it as NULL in the first one.
    pub(super) fn into_values(self) -> Vec<Cell> {
        let Row { key, mut cells } = self;
        if let (Some(first @ Cell::Null), Some(key)) = (cells.first_mut(), key) {
            *first = Cell::Int(key);
        }
        cells
    }
}

/// The pages that were read.
pub(super) struct PageSet(Vec<bool>);

impl PageSet {
    /// Adds a page. Returns false if the page does not exist or was added before.
    fn insert(&mut self, page: u32) -> bool {
        let known = self.0.get_mut(page as usize).filter(|_| page > 0);
        known.is_some_and(|is_known| !std::mem::replace(is_known, true))
    }
}

/// A page of a tree.
struct TreePage {
    bytes: Vec<u8>,
    kind: PageKind,
    /// The offset of the page's header.
    start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageKind {
    TableInterior,
    TableLeaf,
    IndexInterior,
    IndexLeaf,
}

impl PageFile {
    pub(super) fn open(path: &Path) -> io::Result<PageFile> {
        let file = File::open(path)?;
        let n_pages = file.metadata()?.len().div_ceil(PAGE_SIZE as u64);
        Ok(PageFile { file: RefCell::new(file), n_pages: u32::try_from(n_pages).unwrap_or(u32::MAX) })
    }

    /// Returns a set of no pages.
    pub(super) fn empty_set(&self) -> PageSet {
        PageSet(vec![false; self.n_pages as usize + 1])
    }

    /// Reads a page; if the file ends within it, the rest is zeros. `None` if the disk cannot read it.
    fn page(&self, number: u32) -> Option<Vec<u8>> {
        let offset = u64::from(number.checked_sub(1)?) * PAGE_SIZE as u64;
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut bytes = Vec::with_capacity(PAGE_SIZE);
        (&mut *file).take(PAGE_SIZE as u64).read_to_end(&mut bytes).ok()?;
        bytes.resize(PAGE_SIZE, 0);
        Some(bytes)
    }

    fn tree_page(&self, number: u32) -> Option<TreePage> {
        let bytes = self.page(number)?;
        let start = if number == 1 { FILE_HEADER_SIZE } else { 0 };
        let kind = match bytes[start] {
            2 => PageKind::IndexInterior,
            5 => PageKind::TableInterior,
            10 => PageKind::IndexLeaf,
            13 => PageKind::TableLeaf,
            _ => return None,
        };
        Some(TreePage { bytes, kind, start })
    }

    /// Reads the rows of the tree with a root page, except those of pages that were read before. Returns whether all
    /// of it could be read.
    pub(super) fn read_tree(&self, root: u32, seen: &mut PageSet, on_row: &mut dyn FnMut(Row)) -> bool {
        let mut is_complete = true;
        let mut pages = vec![root];
        while let Some(number) = pages.pop() {
            let page = if seen.insert(number) { self.tree_page(number) } else { None };
            let Some(page) = page else {
                is_complete = false;
                continue;
            };
            is_complete &= self.read_rows(&page, on_row);
            let children = page.children();
            is_complete &= children.iter().all(|child| (2..=self.n_pages).contains(child));
            pages.extend(children.into_iter().rev());
        }
        is_complete
    }

    /// Reads the rows of every leaf page of a table that is in no set: pages whose parent is lost.
    pub(super) fn read_unseen_leaves(&self, seen: &mut PageSet, on_row: &mut dyn FnMut(Row)) {
        for number in 2..=self.n_pages {
            if !seen.insert(number) {
                continue;
            }
            if let Some(page) = self.tree_page(number).filter(|page| page.kind == PageKind::TableLeaf) {
                self.read_rows(&page, on_row);
            }
        }
    }

    /// Adds the free pages, which have rows that were deleted.
    pub(super) fn add_free_pages(&self, seen: &mut PageSet) {
        let mut trunk = self.page(1).and_then(|page| be32(&page, 32));
        while let Some(page) = trunk.filter(|trunk| seen.insert(*trunk)).and_then(|trunk| self.page(trunk)) {
            let n = be32(&page, 4).unwrap_or(0) as usize;
            for i in 0..n.min(PAGE_SIZE / 4) {
                be32(&page, 8 + 4 * i).map(|free| seen.insert(free));
            }
            trunk = be32(&page, 0);
        }
    }

    /// Reads the rows of a page. Returns whether all of them could be read.
    fn read_rows(&self, page: &TreePage, on_row: &mut dyn FnMut(Row)) -> bool {
        if page.kind == PageKind::TableInterior {
            return true;
        }
        let mut is_complete = true;
        for at in page.cells() {
            match self.row(page, at) {
                Some((row, is_whole)) => {
                    is_complete &= is_whole;
                    on_row(row);
                }
                None => is_complete = false,
            }
        }
        is_complete
    }

    /// Reads the row at an offset. Returns it, and whether none of its overflow pages is lost.
    fn row(&self, page: &TreePage, at: usize) -> Option<(Row, bool)> {
        let at = if page.kind == PageKind::IndexInterior { at + 4 } else { at };
        let (len, mut at) = varint(&page.bytes, at)?;
        let len = usize::try_from(len).ok().filter(|len| *len <= self.n_pages as usize * PAGE_SIZE)?;
        let mut key = None;
        if page.kind == PageKind::TableLeaf {
            let (number, next) = varint(&page.bytes, at)?;
            (key, at) = (Some(number as i64), next);
        }
        let n_local = local_len(page.kind, len);
        let mut record = page.bytes.get(at..at + n_local)?.to_vec();
        let mut overflow = if n_local < len { be32(&page.bytes, at + n_local) } else { None };
        while record.len() < len {
            let Some(page) = overflow.filter(|next| (2..=self.n_pages).contains(next)) else { break };
            let page = self.page(page)?;
            record.extend(&page[4..PAGE_SIZE.min(4 + len - record.len())]);
            overflow = be32(&page, 0);
        }
        let is_whole = record.len() == len;
        Some((Row { key, cells: decode(&record)? }, is_whole))
    }
}

impl TreePage {
    fn is_interior(&self) -> bool {
        matches!(self.kind, PageKind::TableInterior | PageKind::IndexInterior)
    }

    /// The offsets of the cells.
    fn cells(&self) -> Vec<usize> {
        let n = be16(&self.bytes, self.start + 3).unwrap_or(0);
        let first = self.start + if self.is_interior() { 12 } else { 8 };
        (0..n).map_while(|i| be16(&self.bytes, first + 2 * i)).collect()
    }

    fn children(&self) -> Vec<u32> {
        if !self.is_interior() {
            return Vec::new();
        }
        let offsets = self.cells().into_iter().chain([self.start + 8]);
        offsets.map(|at| be32(&self.bytes, at).unwrap_or(0)).collect()
    }
}

/// The length of the part of a record that is on the tree page itself.
fn local_len(kind: PageKind, len: usize) -> usize {
    let max = if kind == PageKind::TableLeaf { PAGE_SIZE - 35 } else { (PAGE_SIZE - 12) * 64 / 255 - 23 };
    let min = (PAGE_SIZE - 12) * 32 / 255 - 23;
    if len <= max {
        return len;
    }
    let n = min + (len - min) % (PAGE_SIZE - 4);
    if n <= max { n } else { min }
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
