//! A place in a bucket.

use crate::error::{Error, Result};
use crate::source::store::check_prefix;
use std::fmt;

/// Whose protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    S3,
    Google,
    Azure,
}

/// A bucket or container of a provider, and a prefix in it: what `s3://bucket/prefix` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudPlace {
    pub(super) provider: Provider,
    pub(super) bucket: String,
    /// Without leading and trailing `/`; empty for all.
    pub(super) prefix: String,
}

impl CloudPlace {
    /// What is below `prefix` in an S3 bucket.
    pub fn s3(bucket: &str, prefix: &str) -> Result<CloudPlace> {
        CloudPlace::new(Provider::S3, bucket, prefix)
    }

    /// What is below `prefix` in a bucket of Google Cloud Storage.
    pub fn gs(bucket: &str, prefix: &str) -> Result<CloudPlace> {
        CloudPlace::new(Provider::Google, bucket, prefix)
    }

    /// What is below `prefix` in a container of Azure Blob Storage, of the account that the environment names
    /// (`AZURE_STORAGE_ACCOUNT_NAME`).
    pub fn az(container: &str, prefix: &str) -> Result<CloudPlace> {
        CloudPlace::new(Provider::Azure, container, prefix)
    }

    fn new(provider: Provider, bucket: &str, prefix: &str) -> Result<CloudPlace> {
        let prefix = check_prefix(prefix.trim_start_matches('/'))?.to_owned();
        let place = CloudPlace { provider, bucket: bucket.to_owned(), prefix };
        if bucket.is_empty() { Err(Error::invalid(format!("no bucket in {place}"))) } else { Ok(place) }
    }

    /// The same bucket at another prefix.
    pub(super) fn at(&self, prefix: &str) -> Result<CloudPlace> {
        Ok(CloudPlace { prefix: check_prefix(prefix)?.to_owned(), ..self.clone() })
    }

    /// What to call the object or prefix `key` of the bucket in messages.
    pub(super) fn name(&self, key: &str) -> String {
        let scheme = match self.provider {
            Provider::S3 => "s3",
            Provider::Google => "gs",
            Provider::Azure => "az",
        };
        format!("{scheme}://{}/{key}", self.bucket)
    }
}

impl fmt::Display for CloudPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name(&self.prefix))
    }
}
