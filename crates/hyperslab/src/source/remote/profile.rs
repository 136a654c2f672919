//! Whose credentials, which region and which server: from the address, the environment and the files of the AWS tools.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What an address says of an object store beyond bucket and key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloudOptions {
    /// The profile whose credentials and region are taken.
    pub profile: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The server, such as `http://localhost:9000`, in place of the provider's own.
    pub endpoint: Option<String>,
    /// Whether the bucket is a part of the server's name, and not of the path.
    pub virtual_style: bool,
    /// Access key and secret of S3, or account and key of Azure, in place of those of the environment and of profiles.
    pub keys: Option<Keys>,
}

/// An access key with its secret, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    access: String,
    secret: String,
}

impl Keys {
    /// The key `access` with its secret.
    pub fn new(access: impl Into<String>, secret: impl Into<String>) -> Self {
        Keys { access: access.into(), secret: secret.into() }
    }

    /// Access key and secret.
    pub(super) fn pair(&self) -> (&str, &str) {
        (&self.access, &self.secret)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.access)
    }
}

impl CloudOptions {
    /// Sets the access key of S3, or the account and its key of Azure.
    #[must_use]
    pub fn with_keys(mut self, keys: Option<Keys>) -> Self {
        self.keys = keys;
        self
    }

    /// Sets the profile.
    #[must_use]
    pub fn with_profile(mut self, profile: Option<String>) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the region.
    #[must_use]
    pub fn with_region(mut self, region: Option<String>) -> Self {
        self.region = region;
        self
    }

    /// Sets the server.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: Option<String>) -> Self {
        self.endpoint = endpoint;
        self
    }

    /// Makes the bucket a part of the server's name.
    #[must_use]
    pub fn with_virtual_style(mut self, virtual_style: bool) -> Self {
        self.virtual_style = virtual_style;
        self
    }
}

/// Everything that an S3 client has to know.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct S3Settings {
    /// Access key and secret; without them requests are anonymous.
    pub(super) keys: Option<(String, String)>,
    pub(super) token: Option<String>,
    pub(super) region: String,
    pub(super) endpoint: Option<String>,
    /// Whether credentials come from where the process runs (a container, a web identity), as the environment says.
    pub(super) ambient: bool,
}

impl fmt::Debug for S3Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.keys.as_ref().map(|(key, _)| key);
        write!(f, "S3Settings({key:?}, {}, {:?}, {})", self.region, self.endpoint, self.ambient)
    }
}

type Section = HashMap<String, String>;

/// The sections of an INI file; what it does not understand it passes over.
fn sections(text: &str) -> HashMap<String, Section> {
    let mut all: HashMap<String, Section> = HashMap::new();
    let mut current = None;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with(['#', ';']) || bare.is_empty() {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let name = name.trim();
            // The configuration file says `[profile me]`, the file of credentials `[me]`.
            let name = name.strip_prefix("profile ").map_or(name, str::trim);
            current = Some(name.to_owned());
            continue;
        }
        // What is indented belongs to the setting before it.
        let nested = line.starts_with([' ', '\t']);
        if let (Some(section), Some((key, value)), false) = (&current, bare.split_once('='), nested) {
            let value = value.split(" #").next().unwrap_or_default().trim();
            all.entry(section.clone()).or_default().insert(key.trim().to_ascii_lowercase(), value.to_owned());
        }
    }
    all
}

/// Puts together what address, environment and files say, the first of them that says something.
pub(super) fn s3(
    options: &CloudOptions,
    env: &dyn Fn(&str) -> Option<String>,
    read: &dyn Fn(&Path) -> Option<String>,
) -> S3Settings {
    let env = |name: &str| env(name).filter(|value| !value.is_empty());
    let home = env("HOME").or_else(|| env("USERPROFILE")).map(PathBuf::from);
    let file = |name: &str, usual: &str| {
        let path = env(name).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".aws").join(usual)));
        path.and_then(|path| read(&path)).map(|text| sections(&text)).unwrap_or_default()
    };
    let config = file("AWS_CONFIG_FILE", "config");
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    let asked = options.profile.clone().or_else(|| env("AWS_PROFILE"));
    let name = asked.clone().unwrap_or_else(|| "default".into());
    let setting = |key: &str| {
        let found = |file: &HashMap<String, Section>| file.get(&name)?.get(key).cloned();
        found(&credentials).or_else(|| found(&config)).filter(|value| !value.is_empty())
    };
    let of_profile = || setting("aws_access_key_id").zip(setting("aws_secret_access_key"));
    let of_environment = || env("AWS_ACCESS_KEY_ID").zip(env("AWS_SECRET_ACCESS_KEY"));
    let unsigned = env("AWS_NO_SIGN_REQUEST").or_else(|| env("AWS_SKIP_SIGNATURE"));
    let unsigned = unsigned.is_some_and(|value| !matches!(value.as_str(), "0" | "false" | "no"));
    let (keys, token) = if let Some(Keys { access, secret }) = options.keys.clone() {
        (Some((access, secret)), None)
    } else if unsigned {
        (None, None)
    } else if asked.is_some() && of_profile().is_some() {
        (of_profile(), setting("aws_session_token"))
    } else if of_environment().is_some() {
        (of_environment(), env("AWS_SESSION_TOKEN"))
    } else {
        (of_profile(), setting("aws_session_token"))
    };
    let ambient = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    S3Settings {
        ambient: !unsigned && keys.is_none() && ambient.iter().any(|name| env(name).is_some()),
        keys,
        token,
        region: options
            .region
            .clone()
            .or_else(|| setting("region"))
            .or_else(|| env("AWS_REGION"))
            .or_else(|| env("AWS_DEFAULT_REGION"))
            .unwrap_or_else(|| "us-east-1".into()),
        endpoint: options
            .endpoint
            .clone()
            .or_else(|| env("AWS_ENDPOINT_URL_S3"))
            .or_else(|| env("AWS_ENDPOINT_URL"))
            .or_else(|| setting("endpoint_url")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "; a comment\n[default]\nregion = eu-1\n[profile lab]\nregion=eu-2 # near\nendpoint_url = http://lab:9000\ns3 =\n  addressing_style = path\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = D\naws_secret_access_key = DS\n\n[lab]\naws_access_key_id=L\naws_secret_access_key=LS\naws_session_token = T\n";

    fn settings(options: &CloudOptions, env: &[(&str, &str)]) -> S3Settings {
        let env: HashMap<_, _> = env.iter().copied().chain([("HOME", "/h")]).collect();
        s3(options, &|name| env.get(name).map(|v| v.to_string()), &|path| match path.to_str()? {
            "/h/.aws/config" => Some(CONFIG.into()),
            "/h/.aws/credentials" => Some(CREDENTIALS.into()),
            _ => None,
        })
    }

    fn keys(settings: &S3Settings) -> &str {
        settings.keys.as_ref().map_or("none", |(key, _)| key)
    }

    #[test]
    fn secrets_are_not_printed() {
        let options = CloudOptions::default().with_keys(Some(Keys::new("K", "hidden")));
        assert_eq!(keys(&settings(&options, &[("AWS_NO_SIGN_REQUEST", "1")])), "K");
        assert!(!format!("{options:?} {:?}", settings(&options, &[])).contains("hidden"));
    }

    #[test]
    fn address_environment_and_files_are_asked_in_this_order() {
        let plain = CloudOptions::default();
        let lab = CloudOptions::default().with_profile(Some("lab".into()));
        let found = settings(&plain, &[]);
        assert_eq!((keys(&found), found.region.as_str(), &found.endpoint), ("D", "eu-1", &None));
        let found = settings(&lab, &[("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "ES")]);
        assert_eq!((keys(&found), found.region.as_str()), ("L", "eu-2"));
        assert_eq!(found.endpoint.as_deref(), Some("http://lab:9000"));
        assert_eq!(found.token.as_deref(), Some("T"));
        assert_eq!(settings(&plain, &[("AWS_PROFILE", "lab")]), settings(&lab, &[]));
        let environment =
            [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "ES"), ("AWS_SESSION_TOKEN", "ET")];
        let found = settings(&plain, &environment);
        assert_eq!((keys(&found), found.token.as_deref()), ("E", Some("ET")));
        assert_eq!(keys(&settings(&plain, &[("AWS_NO_SIGN_REQUEST", "1")])), "none");
        let found = settings(
            &plain,
            &[("AWS_CONFIG_FILE", "/none"), ("AWS_SHARED_CREDENTIALS_FILE", "/none"), ("AWS_REGION", "x")],
        );
        assert_eq!((keys(&found), found.region.as_str(), found.ambient), ("none", "x", false));
        let region = plain.with_region(Some("r".into())).with_endpoint(Some("http://e".into()));
        let found = settings(&region, &[("AWS_ENDPOINT_URL", "http://other")]);
        assert_eq!((found.region.as_str(), found.endpoint.as_deref()), ("r", Some("http://e")));
    }
}
