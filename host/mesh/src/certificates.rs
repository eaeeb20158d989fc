//! The members of a cluster: a small certificate authority, a certificate for every host, and one for the starter of runs.
//!
//! Hosts speak mutual TLS: nobody without a certificate of the same authority learns or changes anything, a host's certificate is
//! good for its address alone, and a host answers only the names that its cluster had when it was made. On loopback every user has a
//! cluster of their own ([`Credentials::of_this_user`]), so no other user of the machine can start runs with the rights of this one.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fabswarm_diagnostic::Diagnostic;
use fabswarm_sim::cache_folder;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use webpki::EndEntityCert;

use crate::hosts_file::Host;

/// The folder and the name of the starter of runs.
pub const STARTER: &str = "starter";
const AUTHORITY: &str = "ca.pem";
const CERTIFICATE: &str = "host.pem";
const KEY: &str = "host.key";
const MEMBERS: &str = "cluster.toml";
/// The cluster of one user on one machine, in the cache folder, and its only host.
const OWN_CLUSTER: &str = "loopback-cluster";
const LOCALHOST: &str = "localhost";
const OWN_FOLDER: &str = "set FABSWARM_CACHE to a folder of yours, where you may write";
/// The longest name that a certificate has room for.
const NAME_BYTES: usize = 64;
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
pub fn new_cluster(folder: &Path, hosts: &[Host]) -> Result<(), Diagnostic> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let year = 1970 + i32::try_from(seconds / 31_556_952).unwrap_or(0);
    new_cluster_until(folder, hosts, &|_| year + YEARS)
}

/// The same with certificates that expire when the year ends which `year_of` names for each member; the authority lasts longer.
///
/// # Errors
/// As [`new_cluster`].
pub fn new_cluster_until(
    folder: &Path,
    hosts: &[Host],
    year_of: &dyn Fn(&str) -> i32,
) -> Result<(), Diagnostic> {
    let unwritten = |path: &Path, what: String| {
        Diagnostic::of_file(path, what, "name a folder that does not exist yet, where you may write")
    };
    let is_proper = |name: &str| {
        !name.starts_with('.')
            && name.len() <= NAME_BYTES
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-:[]".contains(letter))
    };
    if let Some(host) = hosts.iter().find(|host| !is_proper(&host.name) || host.name == STARTER) {
        let what = format!("host `{}` has a name that no folder can have", host.name);
        return Err(Diagnostic::of_file(folder, what, "give it a `name` of letters, digits, `-` and `_`"));
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
        // The starter dials and never listens, so its certificate names no address.
        let address = hosts.get(number).and_then(|host| host.address.parse::<SocketAddr>().ok());
        let mut names: Vec<String> = address.iter().map(|address| address.ip().to_string()).collect();
        if address.is_some_and(|address| address.ip().is_loopback()) {
            names.push(LOCALHOST.to_owned());
        }
        let mut parameters = CertificateParams::new(names).map_err(made)?;
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

/// The certificate of a host, and the members that it accepts.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
    subjects: BTreeSet<Vec<u8>>,
    /// Whether the cluster is limited to this machine.
    is_local: bool,
}

impl Credentials {
    /// The credentials with which processes of one user speak to each other on loopback. The first one makes them, in the cache
    /// folder; only this user can read them.
    ///
    /// # Errors
    /// When there is no cache folder, or another user owns the keys in it.
    pub fn of_this_user() -> Result<Self, Diagnostic> {
        let none = || Diagnostic::new("there is no folder for the keys of loopback hosts", OWN_FOLDER);
        Self::of_user_in(&cache_folder::find().ok_or_else(none)?.join(OWN_CLUSTER))
    }

    fn of_user_in(folder: &Path) -> Result<Self, Diagnostic> {
        let refused = |error: std::io::Error| Diagnostic::of_file(folder, error, OWN_FOLDER);
        let parent = folder.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(refused)?;
        // A folder of this process, which tells who its user is, becomes the one of all where there is none yet.
        let draft = tempfile::tempdir_in(parent).map_err(refused)?;
        if !folder.exists() {
            let host = Host { name: LOCALHOST.to_owned(), address: "127.0.0.1:0".to_owned(), agents: None };
            let new = draft.path().join(OWN_CLUSTER);
            new_cluster(&new, &[host])?;
            // Another process may have been first.
            let _ = std::fs::rename(new, folder);
        }
        let [own, found] = [draft.path(), folder].map(std::fs::symlink_metadata);
        let (own, found) = (own.map_err(refused)?, found.map_err(refused)?);
        if found.uid() != own.uid() || !found.is_dir() || found.mode() & 0o077 != 0 {
            return Err(Diagnostic::of_file(folder, "others could read or change its keys", OWN_FOLDER));
        }
        Ok(Credentials { is_local: true, ..Self::open(&folder.join(LOCALHOST))? })
    }

    /// Refuses to speak beyond this machine with credentials that are for this machine alone.
    pub(crate) fn check(&self, address: SocketAddr) -> Result<(), Diagnostic> {
        if self.is_local && !address.ip().is_loopback() {
            return Err(Diagnostic::new(
                format!("{address} is beyond this machine, and nothing would protect what travels"),
                "make certificates with `fabswarm host new-cluster`, and add `--cluster FOLDER`",
            ));
        }
        Ok(())
    }

    /// The name that the host at `address` must have in its certificate.
    pub(crate) fn name_of(&self, address: SocketAddr) -> ServerName<'static> {
        match ServerName::try_from(LOCALHOST) {
            Ok(localhost) if self.is_local => localhost,
            _ => ServerName::IpAddress(address.ip().into()),
        }
    }

    /// Reads the folder that [`new_cluster`] made for one host.
    ///
    /// # Errors
    /// When it is not one.
    pub fn open(folder: &Path) -> Result<Self, Diagnostic> {
        let refused = |name: &str, what: &dyn fmt::Display| {
            let remedy = "name the folder of this host that `fabswarm host new-cluster` made";
            Diagnostic::of_file(&folder.join(name), what, remedy)
        };
        let certificate = |name: &str| {
            CertificateDer::from_pem_file(folder.join(name)).map_err(|error| refused(name, &error))
        };
        let mut roots = RootCertStore::empty();
        roots.add(certificate(AUTHORITY)?).map_err(|error| refused(AUTHORITY, &error))?;
        let (roots, chain) = (Arc::new(roots), vec![certificate(CERTIFICATE)?]);
        let key = PrivateKeyDer::from_pem_file(folder.join(KEY)).map_err(|error| refused(KEY, &error))?;
        let path = folder.join(MEMBERS);
        let text = std::fs::read_to_string(&path).map_err(|error| refused(MEMBERS, &error))?;
        let file: ClusterFile = toml_edit::de::from_str(&text).map_err(|error| refused(MEMBERS, &error))?;
        let unusable = |error: rustls::Error| refused(CERTIFICATE, &error);
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| refused(AUTHORITY, &error))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(unusable)?;
        // No session is resumed: the certificate is checked on every connection.
        server.send_tls13_tickets = 0;
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        let subjects = file.members.iter().map(|name| subject(name)).collect();
        Ok(Credentials { server: Arc::new(server), client: Arc::new(client), subjects, is_local: false })
    }

    /// Whether a certificate of this cluster is that of a member.
    pub(crate) fn has_member(&self, certificate: &CertificateDer<'_>) -> bool {
        EndEntityCert::try_from(certificate)
            .is_ok_and(|certificate| self.subjects.contains(certificate.subject()))
    }
}

/// The subject of a member's certificate, in DER: its common name and nothing else.
fn subject(name: &str) -> Vec<u8> {
    let [object, utf8, sequence, set] = [0x06, 0x0c, 0x30, 0x31];
    // Names are short, so a length is one byte.
    let tagged = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
    let common_name = [tagged(object, &[0x55, 4, 3]), tagged(utf8, name.as_bytes())].concat();
    tagged(set, &tagged(sequence, &common_name))
}

#[cfg(test)]
mod tests;
