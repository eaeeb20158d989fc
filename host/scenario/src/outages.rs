//! Agents that are away for a while, in the compact text that fits a file and a flag: `3@200+500, 4@0+10`.

use serde::Deserialize;

/// An agent whose radio is off, or that is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The number of the agent.
    pub agent: usize,
    /// The first round in which it is away.
    pub from: u32,
    /// Rounds for which it is away.
    pub rounds: u32,
}

/// An agent that stops at the start of a round and starts again some rounds later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The number of the agent.
    pub agent: usize,
    /// The round at whose start it stops.
    pub round: u32,
    /// Rounds after which it starts again.
    pub down_rounds: u32,
    /// Whether it starts with the state in which it stopped.
    pub keeps_memory: bool,
}

/// Every agent that falls silent, or freezes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OutageList(pub Vec<Outage>);

/// Every agent that crashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Crashes(pub Vec<Crash>);

impl TryFrom<String> for OutageList {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let silence = |entry| {
            let (agent, from, rounds) = span(entry)?;
            // A crash may well be over at once: the memory is lost all the same.
            if rounds == 0 {
                return Err(format!("`{entry}` lasts 0 rounds"));
            }
            Ok(Outage { agent, from, rounds })
        };
        entries(&text).map(silence).collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for Crashes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let crash = |entry: &str| {
            let (place, keeps_memory) = match entry.split_once(char::is_whitespace) {
                None => (entry, true),
                Some((place, word)) if word.trim() == "forgets" => (place, false),
                Some((_, word)) => {
                    return Err(format!("`{}` is not the word `forgets`", word.trim()));
                }
            };
            let (agent, round, down_rounds) = span(place)?;
            Ok(Crash { agent, round, down_rounds, keeps_memory })
        };
        entries(&text).map(crash).collect::<Result<_, _>>().map(Self)
    }
}

/// The form of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextForm {
    /// Says what is wrong with a text.
    pub(super) check: fn(&str) -> Result<(), String>,
    pub(super) description: &'static str,
}

/// The form of an [`OutageList`].
pub(super) const OUTAGES: TextForm = TextForm {
    check: |text| OutageList::try_from(text.to_owned()).map(drop),
    description: "AGENT@ROUND+ROUNDS separated by commas, as in \"3@200+500, 4@0+10\"",
};

/// The form of [`Crashes`].
pub(super) const CRASHES: TextForm = TextForm {
    check: |text| Crashes::try_from(text.to_owned()).map(drop),
    description: "AGENT@ROUND+ROUNDS, and `forgets` where the memory is lost, separated by commas, as in \
                  \"3@300+50 forgets, 4@0+10\"",
};

fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Reads `AGENT@ROUND+ROUNDS`.
fn span(entry: &str) -> Result<(usize, u32, u32), String> {
    let number = |text: &str, what: &str| {
        text.trim().parse().map_err(|_| format!("`{}` in `{entry}` is not {what}", text.trim()))
    };
    let (agent, rest) = entry.split_once('@').ok_or_else(|| format!("`{entry}` has no round"))?;
    let (from, rounds) = rest.split_once('+').ok_or_else(|| format!("`{entry}` has no number of rounds"))?;
    Ok((number(agent, "an agent")? as usize, number(from, "a round")?, number(rounds, "a number of rounds")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn outages(text: &str) -> Result<OutageList, String> {
        text.to_owned().try_into()
    }

    fn crashes(text: &str) -> Result<Crashes, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn both_forms_are_read() {
        let outage = |agent, from, rounds| Outage { agent, from, rounds };
        assert_eq!(outages("3@200+500, 4@0+10,").unwrap().0, [outage(3, 200, 500), outage(4, 0, 10)]);
        let crash =
            |agent, round, down_rounds, keeps_memory| Crash { agent, round, down_rounds, keeps_memory };
        let expected = [crash(3, 300, 50, false), crash(4, 1, 2, true)];
        assert_eq!(crashes(" 3@300+50  forgets,4@1+2").unwrap().0, expected);
        assert_eq!(crashes(""), Ok(Crashes::default()));
    }

    #[test]
    fn errors_name_the_entry() {
        assert_eq!(outages("3").unwrap_err(), "`3` has no round");
        assert_eq!(outages("a@1+2").unwrap_err(), "`a` in `a@1+2` is not an agent");
        assert_eq!(outages("1@-1+2").unwrap_err(), "`-1` in `1@-1+2` is not a round");
        assert_eq!(outages("3@1+0").unwrap_err(), "`3@1+0` lasts 0 rounds");
        assert_eq!(crashes("1@2+3 dies").unwrap_err(), "`dies` is not the word `forgets`");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*", near in "[0-9@+, a-z]{0,30}") {
            for text in [&text, &near] {
                let _ = outages(text);
                let _ = crashes(text);
            }
        }
    }
}
