//! Who belongs to a cluster: a small certificate authority, a certificate for every host, and one for who starts runs.
//!
//! Beyond loopback hosts speak mutual TLS: nobody without a certificate of the same authority learns or changes anything, a host's
//! certificate is good for its address alone, and a host answers only the names that its cluster had when it was made.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::hosts_file::Host;

/// The folder, and the name, of who starts runs.
pub const STARTER: &str = "starter";
const AUTHORITY: &str = "ca.pem";
const CERTIFICATE: &str = "host.pem";
const KEY: &str = "host.key";
const MEMBERS: &str = "cluster.toml";
/// Years after which certificates expire.
const YEARS: i32 = 10;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterFile {
    members: Vec<String>,
}

/// Makes a cluster of `hosts` in the new folder `folder`: in it a folder for each host and one for who starts runs, to be carried
/// there, and the authority's own key, which nobody needs to run anything.
///
/// # Errors
/// When a host has no proper name, or something cannot be written.
pub fn new_cluster(folder: &Path, hosts: &[Host]) -> Result<(), Error> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let year = 1970 + i32::try_from(seconds / 31_556_952).unwrap_or(0);
    new_cluster_until(folder, hosts, &|_| year + YEARS)
}

/// The same with certificates that expire when the year ends which `year_of` names for each member; the authority lasts longer.
///
/// # Errors
/// As [`new_cluster`].
pub fn new_cluster_until(folder: &Path, hosts: &[Host], year_of: &dyn Fn(&str) -> i32) -> Result<(), Error> {
    let unwritten = |path: &Path, what: String| Error::Cluster {
        path: path.to_owned(),
        what,
        remedy: "name a folder that does not exist yet, where you may write".to_owned(),
    };
    let is_proper = |name: &str| {
        !name.starts_with('.')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-:[]".contains(letter))
    };
    if let Some(host) = hosts.iter().find(|host| !is_proper(&host.name) || host.name == STARTER) {
        return Err(Error::Cluster {
            path: folder.to_owned(),
            what: format!("host `{}` has a name that no folder can have", host.name),
            remedy: "give it a `name` of letters, digits, `-` and `_`".to_owned(),
        });
    }
    let made = |error: rcgen::Error| unwritten(folder, error.to_string());
    let directory = |path: &Path| {
        DirBuilder::new().mode(0o700).create(path).map_err(|error| unwritten(path, error.to_string()))
    };
    let write = |path: PathBuf, text: &str| {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| unwritten(&path, error.to_string()))
    };
    directory(folder)?;
    let last = hosts.iter().map(|host| year_of(&host.name)).fold(year_of(STARTER), i32::max);
    let expires = |parameters: &mut CertificateParams, name: &str, year: i32| {
        parameters.not_after = date_time_ymd(year, 12, 31);
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, name);
    };
    let mut parameters = CertificateParams::default();
    expires(&mut parameters, "fabswarm cluster", last);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().map_err(made)?;
    let authority = parameters.self_signed(&key).map_err(made)?.pem();
    write(folder.join(AUTHORITY), &authority)?;
    write(folder.join("ca.key"), &key.serialize_pem())?;
    let issuer = Issuer::new(parameters, key);
    let members: Vec<String> =
        hosts.iter().map(|host| host.name.clone()).chain([STARTER.to_owned()]).collect();
    let cluster = toml_edit::ser::to_string(&ClusterFile { members: members.clone() })
        .map_err(|error| unwritten(folder, error.to_string()))?;
    for (number, name) in members.iter().enumerate() {
        // Who starts runs dials and never listens, so its certificate is good for no address.
        let address = hosts.get(number).and_then(|host| host.address.parse::<SocketAddr>().ok());
        let addresses: Vec<String> = address.iter().map(|address| address.ip().to_string()).collect();
        let mut parameters = CertificateParams::new(addresses).map_err(made)?;
        expires(&mut parameters, name, year_of(name));
        let key = KeyPair::generate().map_err(made)?;
        let certificate = parameters.signed_by(&key, &issuer).map_err(made)?;
        let own = folder.join(name);
        directory(&own)?;
        write(own.join(AUTHORITY), &authority)?;
        write(own.join(CERTIFICATE), &certificate.pem())?;
        write(own.join(KEY), &key.serialize_pem())?;
        write(own.join(MEMBERS), &cluster)?;
    }
    Ok(())
}

/// What a host shows others, and whom it answers.
#[derive(Clone, Debug)]
pub struct Credentials {
    folder: PathBuf,
    members: Vec<String>,
}

impl Credentials {
    /// Reads the folder that [`new_cluster`] made for one host.
    ///
    /// # Errors
    /// When it is not one.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let refused = |path: &Path, what: String| Error::Cluster {
            path: path.to_owned(),
            what,
            remedy: "name the folder of this host that `fabswarm host new-cluster` made".to_owned(),
        };
        for name in [AUTHORITY, CERTIFICATE, KEY] {
            let path = folder.join(name);
            if let Err(error) = std::fs::metadata(&path) {
                return Err(refused(&path, error.to_string()));
            }
        }
        let path = folder.join(MEMBERS);
        let text = std::fs::read_to_string(&path).map_err(|error| refused(&path, error.to_string()))?;
        let file: ClusterFile =
            toml_edit::de::from_str(&text).map_err(|error| refused(&path, error.to_string()))?;
        let folder = folder.canonicalize().map_err(|error| refused(folder, error.to_string()))?;
        Ok(Credentials { folder, members: file.members })
    }

    /// The settings of Zenoh for a link with these credentials, as JSON.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let path = |name: &str| serde_json::json!(self.folder.join(name)).to_string();
        vec![
            ("transport/link/tls/root_ca_certificate", path(AUTHORITY)),
            ("transport/link/tls/listen_private_key", path(KEY)),
            ("transport/link/tls/listen_certificate", path(CERTIFICATE)),
            ("transport/link/tls/connect_private_key", path(KEY)),
            ("transport/link/tls/connect_certificate", path(CERTIFICATE)),
            ("transport/link/tls/enable_mtls", "true".to_owned()),
            ("transport/link/tls/verify_name_on_connect", "true".to_owned()),
            ("transport/link/tls/close_link_on_expiration", "true".to_owned()),
        ]
    }

    /// Whom a host answers, as JSON: those who show the certificate of a member, and nobody else.
    pub(crate) fn access(&self, key: &str) -> (&'static str, String) {
        let access = serde_json::json!({
            "enabled": true,
            "default_permission": "deny",
            "rules": [{
                "id": "ask",
                "messages": ["query", "reply", "declare_queryable"],
                "flows": ["ingress", "egress"],
                "permission": "allow",
                "key_exprs": [key],
            }],
            "subjects": [{ "id": "members", "cert_common_names": self.members }],
            "policies": [{ "rules": ["ask"], "subjects": ["members"] }],
        });
        ("access_control", access.to_string())
    }
}

/// How an address is spoken with: in the clear on loopback, with TLS where there are credentials.
///
/// # Errors
/// When it is an address of a network, and there are none.
pub fn endpoint(address: &str, credentials: Option<&Credentials>) -> Result<String, Error> {
    let is_loopback = address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    match credentials {
        Some(_) => Ok(format!("tls/{address}")),
        None if is_loopback => Ok(format!("tcp/{address}")),
        None => Err(Error::Unprotected { address: address.to_owned() }),
    }
}

#[cfg(test)]
mod tests;
