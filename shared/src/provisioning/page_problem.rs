//! How a problem gets into a page and out of it.

use super::constants::ProblemConstants;
use super::{Error, WriteError};
use crate::problem::{AnyProblem, Problem};

/// A problem that boards can run: one that reads itself from a page.
///
/// A user's problem keeps its numbers in one slice of words, which a board reads where they are in flash, and whatever else it
/// needs in a slice of bytes: [`PageData::own`] and [`PageData::take_own`] pass them on. `examples/own-problem` has such a problem.
pub trait PageProblem<'a>: Problem<f32> + Sized {
    /// The data that a page must hold of this problem.
    ///
    /// # Errors
    /// [`WriteError::Count`] for a problem with more of something than a page can say.
    fn page_data(&self) -> Result<PageData<'a>, WriteError>;

    /// The problem that a page holds. The caller checks the problem.
    ///
    /// # Errors
    /// [`Error::OtherProblem`] where it is another one, [`Error::Malformed`] where the data contradict each other.
    fn from_page(data: PageData<'a>) -> Result<Self, Error>;
}

/// The data of a problem in a page.
#[derive(Clone, Copy, Debug)]
pub struct PageData<'a> {
    pub(super) constants: ProblemConstants<'a>,
    /// They follow each other in the page: what is read has all of them in the first.
    pub(super) words: [&'a [f32]; 4],
}

impl<'a> PageData<'a> {
    /// A user's problem. `name` distinguishes it from other ones.
    pub const fn own(name: &'a str, words: &'a [f32], bytes: &'a [u8]) -> Self {
        Self { constants: ProblemConstants::Own { name, bytes }, words: [words, &[], &[], &[]] }
    }

    /// The words and bytes of the user's problem that has this `name`.
    ///
    /// # Errors
    /// [`Error::OtherProblem`] where the page holds another problem.
    pub fn take_own(self, name: &str) -> Result<(&'a [f32], &'a [u8]), Error> {
        match self.constants {
            ProblemConstants::Own { name: found, bytes } if found == name => Ok((self.words[0], bytes)),
            _ => Err(Error::OtherProblem),
        }
    }

    pub(super) const fn read(constants: ProblemConstants<'a>, words: &'a [f32]) -> Self {
        Self { constants, words: [words, &[], &[], &[]] }
    }
}

impl<'a> PageProblem<'a> for AnyProblem<'a, f32> {
    fn page_data(&self) -> Result<PageData<'a>, WriteError> {
        let (constants, words) = ProblemConstants::of(self)?;
        Ok(PageData { constants, words })
    }

    fn from_page(data: PageData<'a>) -> Result<Self, Error> {
        data.constants.with(data.words[0])
    }
}
