//! The requests of a client, counted and watched: what answers is held to what it may answer.

use super::put::Tries;
use crate::error::{Error, ErrorKind, Result};
use crate::source::remote::failure;
use crate::source::remote::progress::{Progress, patience};
use crate::source::remote::{Meter, RemoteOptions};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, RANGE};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{self, Poll};
use std::time::Instant;
use tokio::time::Sleep;

/// Bytes of an answer that is no object: a page of a listing, what a store says of an error or of what was written. The
/// client itself reads them to their end.
const TALK: u64 = 16 << 20;

/// Makes clients whose requests are counted and watched.
#[derive(Debug)]
pub(super) struct Watching {
    pub(super) meter: Arc<Meter>,
    pub(super) options: RemoteOptions,
}

impl HttpConnector for Watching {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Watched { inner, meter: self.meter.clone(), options: self.options.clone() }))
    }
}

#[derive(Debug)]
struct Watched {
    inner: HttpClient,
    meter: Arc<Meter>,
    options: RemoteOptions,
}

impl HttpService for Watched {
    // The expansion of `async fn call` in a trait that is used as an object.
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            self.meter.requests.fetch_add(1, Ordering::Relaxed);
            let asked = Asked::of(&request);
            if let Some(tries) = request.extensions().get::<Tries>() {
                tries.again();
            }
            let mut patience = patience(&self.options, request.body().content_length());
            if asked.completes {
                // Stores may take minutes to put parts together.
                patience = patience.saturating_mul(10);
            }
            let begun = Instant::now();
            let answer = match tokio::time::timeout(patience, self.inner.execute(request)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let text = format!("no answer came in {patience:?} from {}", failure::shown(&asked.url));
                    Err(HttpError::new(HttpErrorKind::Timeout, Error::new(ErrorKind::Io, text)))
                }
            };
            let again = match &answer {
                Ok(answer) => answer.status().is_server_error() || answer.status().as_u16() == 429,
                Err(_) => true,
            };
            if again {
                // What is worth another try gets one, up to a bound.
                self.meter.retries.fetch_add(1, Ordering::Relaxed);
            } else {
                self.meter.answered(begun.elapsed());
            }
            let (head, body) = answer?.into_parts();
            if let Err(e) = asked.check(head.status.as_u16(), &head.headers) {
                // Not worth another try.
                return Err(HttpError::new(HttpErrorKind::Decode, e));
            }
            let most = if asked.object && head.status.is_success() { u64::MAX } else { TALK };
            let progress = Progress::new(&self.options);
            let timer = Box::pin(tokio::time::sleep_until(progress.ends().into()));
            let body = Answer { inner: body, url: asked.url, progress, timer, most, came: 0 };
            Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
        })
    }
}

/// What has to be known of a request to judge its answer.
struct Asked {
    url: String,
    /// Whether it is a look at an object, or a read.
    object: bool,
    ranged: bool,
    /// Whether it makes one object of parts.
    completes: bool,
}

impl Asked {
    fn of(request: &HttpRequest) -> Asked {
        let query = request.uri().query().unwrap_or_default();
        let listing = query.contains("list-type=") || query.contains("comp=list");
        let method = request.method().as_str();
        Asked {
            url: request.uri().to_string(),
            completes: method == "POST" && query.contains("uploadId="),
            object: matches!(method, "GET" | "HEAD") && !listing,
            ranged: method == "GET"
                && request.headers().keys().any(|name| name == RANGE || name == "x-ms-range"),
        }
    }

    /// Fails where an answer is not what a store may say: something in between has spoken.
    fn check(&self, status: u16, headers: &HeaderMap) -> Result<()> {
        if !(200..300).contains(&status) {
            return Ok(());
        }
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if text(CONTENT_TYPE).trim_start().starts_with("text/html") && !speaks_as_store(headers) {
            return Err(failure::web_page(&self.url, status, b""));
        }
        if self.ranged && status == 200 && text(CONTENT_LENGTH) != "0" {
            let shown = failure::shown(&self.url);
            let text = format!("the server sent all of {shown}, not the part that was asked for");
            return Err(Error::new(ErrorKind::Io, text).hint(
                "what speaks for the store there has no ranges; copy the object here and open the copy",
            ));
        }
        Ok(())
    }
}

/// Whether the headers have one that object stores and nobody else send. Objects may be web pages.
fn speaks_as_store(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| ["x-amz", "x-goog-", "x-ms-"].iter().any(|start| name.as_str().starts_with(start)))
}

/// The body of an answer that has to make progress and to end.
struct Answer {
    inner: HttpResponseBody,
    url: String,
    progress: Progress,
    timer: Pin<Box<Sleep>>,
    most: u64,
    came: u64,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if self.timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                let failed = self.progress.failed(&self.url);
                return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Timeout, failed))));
            }
        };
        if let Some(Ok(frame)) = &frame
            && let Some(bytes) = frame.data_ref()
        {
            let length = bytes.len();
            self.progress.came(length);
            let ends = self.progress.ends();
            self.timer.as_mut().reset(ends.into());
            self.came = self.came.saturating_add(length as u64);
            if self.came > self.most {
                let what = format!("what {} says in bytes", failure::shown(&self.url));
                let failed = Error::limit(what, self.came.into(), self.most.into());
                return Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Decode, failed))));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
