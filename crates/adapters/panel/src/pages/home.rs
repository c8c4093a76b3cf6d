//! `/panel`: leads to the first page.

use actix_web::HttpResponse;

use crate::next::Next;
use crate::refusal::Refusal;
use crate::reply::see_other;
use crate::visit::Member;

/// GET
pub(crate) async fn lead(_member: Member) -> Result<HttpResponse, Refusal> {
    see_other(&Next::default().path())
}
