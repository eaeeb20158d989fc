//! Which hosts a run is started on: `hosts.toml`, a list of addresses, or a number of processes on this machine.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;

use fabswarm_diagnostic::Diagnostic;
use serde::Deserialize;

/// A host that can take part in a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name; by default its address.
    #[serde(default)]
    pub name: String,
    /// The address at which `fabswarm host` listens.
    pub address: String,
    /// The number of its agents; by default an equal share of the rest.
    pub agents: Option<usize>,
}

/// The value of `--hosts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostList {
    /// Hosts that run already.
    Running(Vec<Host>),
    /// This number of processes on this machine.
    Local(usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostsFile {
    #[serde(default)]
    host: Vec<Host>,
}

impl HostList {
    /// The hosts; those that are still to be started have no address.
    pub fn hosts(&self) -> Vec<Host> {
        let local = |number| Host { name: format!("local{number}"), address: String::new(), agents: None };
        match self {
            HostList::Running(hosts) => hosts.clone(),
            HostList::Local(count) => (1..=*count).map(local).collect(),
        }
    }

    /// Reads what `--hosts` was given.
    ///
    /// # Errors
    /// When it is neither a readable file nor a list.
    pub fn read(given: &str) -> Result<Self, Diagnostic> {
        if let Some(count) = given.strip_prefix("127.0.0.1x").or_else(|| given.strip_prefix("localhostx")) {
            return match count.parse() {
                Ok(count @ 1..=64) => Ok(HostList::Local(count)),
                _ => Err(refused(given, format!("`{count}` is not a number of hosts from 1 to 64"))),
            };
        }
        let path = Path::new(given);
        let hosts = if path.extension().is_some_and(|extension| extension == "toml") || path.is_file() {
            read_file(path)?
        } else {
            let host =
                |address: &str| Host { name: String::new(), address: address.to_owned(), agents: None };
            given.split(',').map(str::trim).map(host).collect()
        };
        Ok(HostList::Running(checked(given, hosts)?))
    }
}

fn refused(given: &str, what: String) -> Diagnostic {
    let remedy = "name a hosts.toml, addresses such as 10.0.0.11:7447,10.0.0.12:7447, or 127.0.0.1x2 for two hosts on this machine";
    Diagnostic::new(format!("`--hosts {given}`: {what}"), remedy)
}

fn read_file(path: &Path) -> Result<Vec<Host>, Diagnostic> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Diagnostic::of_file(path, format!("cannot be read: {error}"), "check its name and rights")
    })?;
    let file: HostsFile = toml_edit::de::from_str(&text).map_err(|error| {
        let remedy = "each host is `[[host]]` with `address`, and if you like `name` and `agents`";
        Diagnostic::of_file(path, error.to_string().trim_end(), remedy)
    })?;
    Ok(file.host)
}

/// Hosts with names, no two alike.
fn checked(given: &str, mut hosts: Vec<Host>) -> Result<Vec<Host>, Diagnostic> {
    if hosts.is_empty() {
        return Err(refused(given, "it names no host".to_owned()));
    }
    let (mut names, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for host in &mut hosts {
        if host.address.parse::<SocketAddr>().is_err() {
            return Err(refused(given, format!("`{}` is not an address with a port", host.address)));
        }
        if host.name.is_empty() {
            host.name.clone_from(&host.address);
        }
        if !names.insert(host.name.clone()) || !addresses.insert(host.address.clone()) {
            return Err(refused(given, format!("host {} at {} is there twice", host.name, host.address)));
        }
        if host.agents == Some(0) {
            return Err(refused(given, format!("host {} has `agents = 0`", host.name)));
        }
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_from_a_file_a_list_or_this_machine() {
        assert_eq!(HostList::read("127.0.0.1x3").unwrap(), HostList::Local(3));
        let HostList::Running(hosts) = HostList::read("10.0.0.1:7447, 10.0.0.2:7447").unwrap() else {
            panic!("they run elsewhere")
        };
        assert_eq!(hosts[1].name, "10.0.0.2:7447");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        let text = "[[host]]\nname = \"a\"\naddress = \"10.0.0.1:7447\"\nagents = 4\n\n[[host]]\naddress = \"[::1]:7447\"\n";
        std::fs::write(&path, text).unwrap();
        let HostList::Running(hosts) = HostList::read(path.to_str().unwrap()).unwrap() else {
            panic!("they run elsewhere")
        };
        assert_eq!((hosts[0].name.as_str(), hosts[0].agents), ("a", Some(4)));
        assert_eq!((hosts[1].name.as_str(), hosts[1].agents), ("[::1]:7447", None));
    }

    #[test]
    fn what_is_not_a_list_of_hosts_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        let file = |text: &str| {
            std::fs::write(&path, text).unwrap();
            HostList::read(path.to_str().unwrap()).unwrap_err().to_string()
        };
        let list = |given: &str| HostList::read(given).unwrap_err().to_string();
        for (refusal, what) in [
            (list("127.0.0.1x0"), "`0` is not a number of hosts"),
            (list("gpu1"), "`gpu1` is not an address with a port"),
            (list("10.0.0.1:1,10.0.0.1:1"), "is there twice"),
            (list("none.toml"), "cannot be read"),
            (file(""), "it names no host"),
            (file("[[host]]\naddress = \"10.0.0.1:1\"\nagents = 0\n"), "`agents = 0`"),
            (file("[[host]]\naddres = \"10.0.0.1:1\"\n"), "addres"),
        ] {
            assert!(refusal.contains(what) && refusal.contains("help: "), "{refusal}\nlacks {what}");
        }
    }
}
