//! The client of one bucket, made anew in a process that was forked, and counted request by request.

use super::get::failed;
use super::place::{CloudPlace, Provider};
use super::watch::Watching;
use crate::error::Result;
use crate::source::remote::profile::{self, CloudOptions, Keys};
use crate::source::remote::runtime::engine;
use crate::source::remote::{LONGEST_DELAY, Meter, RemoteOptions};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::list::PaginatedListStore;
use object_store::multipart::MultipartStore;
use object_store::{
    BackoffConfig, ClientOptions, Error as CloudError, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig,
};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is asked of the client of one bucket.
pub(super) trait Bucket: ObjectStore + PaginatedListStore + MultipartStore {}

impl<T: ObjectStore + PaginatedListStore + MultipartStore> Bucket for T {}

/// The variables of the environment that say who asks. S3's are read together with the files of its tools.
const CREDENTIALS: &[(Provider, &[&str])] = &[
    (
        Provider::Google,
        &[
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
            "GOOGLE_SERVICE_ACCOUNT_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_BEARER_TOKEN",
        ],
    ),
    (
        Provider::Azure,
        &[
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_ACCESS_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_STORAGE_SAS_KEY",
            "AZURE_STORAGE_CLIENT_ID",
            "AZURE_CLIENT_ID",
            "AZURE_STORAGE_TOKEN",
            "AZURE_FEDERATED_TOKEN_FILE",
        ],
    ),
];

impl Provider {
    /// Whether nothing in the environment says who asks.
    fn is_anonymous(self) -> bool {
        let mut known =
            CREDENTIALS.iter().filter(|(provider, _)| *provider == self).flat_map(|(_, names)| *names);
        known.all(|name| std::env::var_os(name).is_none())
    }
}

/// The client of one bucket or container.
pub(in crate::source::remote) struct Client {
    pub(super) place: CloudPlace,
    cloud: CloudOptions,
    pub(super) options: RemoteOptions,
    pub(super) meter: Arc<Meter>,
    /// With the process that made it.
    made: Mutex<Option<(u32, Arc<dyn Bucket>)>>,
}

// What it is made of has credentials.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.name(""))
    }
}

impl Client {
    /// The client of the bucket of a place.
    pub(super) fn new(place: &CloudPlace, cloud: &CloudOptions, options: &RemoteOptions) -> Client {
        Client {
            place: place.clone(),
            cloud: cloud.clone(),
            options: options.clone(),
            meter: Arc::new(Meter::default()),
            made: Mutex::new(None),
        }
    }

    /// What to call the object or prefix `key` in messages.
    pub(super) fn name(&self, key: &str) -> String {
        self.place.name(key)
    }

    pub(super) fn provider(&self) -> Provider {
        self.place.provider
    }

    /// The client of this process.
    pub(super) fn store(&self) -> Result<Arc<dyn Bucket>> {
        // Also chooses what TLS is made with.
        let process = engine()?.process;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, store)) = made.as_ref()
            && *owner == process
        {
            return Ok(store.clone());
        }
        let store = self.make().map_err(|e| failed(&self.name(""), e))?;
        // The parent's connections are not ours to close.
        std::mem::forget(made.replace((process, store.clone())));
        Ok(store)
    }

    fn make(&self) -> Result<Arc<dyn Bucket>, CloudError> {
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: self.options.delay,
                max_backoff: LONGEST_DELAY,
                base: 2.0,
            },
            max_retries: self.options.retries as usize,
            retry_timeout: Duration::from_secs(180),
        };
        let watching = Watching { meter: self.meter.clone(), options: self.options.clone() };
        let insecure =
            |endpoint: &Option<String>| endpoint.as_ref().is_some_and(|e| e.starts_with("http://"));
        let client =
            ClientOptions::new().with_timeout_disabled().with_connect_timeout(Duration::from_secs(15));
        let endpoint = self.cloud.endpoint.clone();
        let anonymous = self.provider().is_anonymous();
        Ok(match self.provider() {
            Provider::S3 => {
                let read = |path: &std::path::Path| std::fs::read_to_string(path).ok();
                let settings = profile::s3(&self.cloud, &|name| std::env::var(name).ok(), &read);
                let mut builder =
                    if settings.ambient { AmazonS3Builder::from_env() } else { AmazonS3Builder::new() };
                builder = builder
                    .with_bucket_name(&self.place.bucket)
                    .with_region(settings.region)
                    .with_virtual_hosted_style_request(self.cloud.virtual_style)
                    .with_client_options(client.with_allow_http(insecure(&settings.endpoint)))
                    .with_retry(retry)
                    .with_http_connector(watching);
                if let Some(endpoint) = settings.endpoint {
                    builder = builder.with_endpoint(self.server(&endpoint));
                }
                builder = match settings.keys {
                    Some((key, secret)) => builder.with_access_key_id(key).with_secret_access_key(secret),
                    None => builder.with_skip_signature(!settings.ambient),
                };
                if let Some(token) = settings.token {
                    builder = builder.with_token(token);
                }
                Arc::new(builder.build()?)
            }
            Provider::Google => {
                let mut builder = GoogleCloudStorageBuilder::from_env()
                    .with_bucket_name(&self.place.bucket)
                    .with_client_options(client.with_allow_http(insecure(&endpoint)))
                    .with_retry(retry)
                    .with_http_connector(watching);
                if anonymous {
                    // Without a token, writing would ask the machine that it might run on for one.
                    builder = builder.with_skip_signature(true).with_bearer_token("");
                }
                if let Some(endpoint) = endpoint {
                    builder = builder.with_base_url(&endpoint);
                }
                Arc::new(builder.build()?)
            }
            Provider::Azure => {
                let mut builder = MicrosoftAzureBuilder::from_env()
                    .with_container_name(&self.place.bucket)
                    .with_client_options(client.with_allow_http(insecure(&endpoint)))
                    .with_retry(retry)
                    .with_skip_signature(anonymous && self.cloud.keys.is_none())
                    .with_http_connector(watching);
                if let Some((account, key)) = self.cloud.keys.as_ref().map(Keys::pair) {
                    builder = builder.with_account(account).with_access_key(key);
                }
                if let Some(endpoint) = endpoint {
                    builder = builder.with_endpoint(endpoint);
                }
                Arc::new(builder.build()?)
            }
        })
    }

    /// The server, with the bucket in its name where that is the style.
    fn server(&self, endpoint: &str) -> String {
        match endpoint.split_once("://") {
            Some((scheme, rest)) if self.cloud.virtual_style => {
                format!("{scheme}://{}.{rest}", self.place.bucket)
            }
            _ => endpoint.to_owned(),
        }
    }

    /// What the store says of an object; `None` if there is none.
    pub(super) fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        let (store, path, name) = (self.store()?, super::path(key)?, self.name(key));
        engine()?.run(async move {
            match store.head(&path).await {
                Ok(meta) => Ok(Some(meta)),
                Err(CloudError::NotFound { .. }) => Ok(None),
                Err(e) => Err(failed(&name, e)),
            }
        })
    }
}
